import Hub
import TestSupport
import Testing
import Wire

/// Whether users and their devices are connected, by which pushes are decided.
@Suite struct ConnectionStatusTests {
    private static func claims(_ session: String?) -> Claims {
        let rest = session.map { #","session_id":"\#($0)""# } ?? ""
        return Claims(
            role: "authenticated", subject: "ada", expiresAt: 10_000, json: Array(#"{"sub":"ada"\#(rest)}"#.utf8))
    }

    private let users = UserPresence(notesTransitions: false)
    private let devices = UserPresence(notesTransitions: false)

    private func stage() -> Stage {
        Stage(
            hub: Hub(
                loop: 0, verifier: TokenBook(), random: SeededGenerator(seed: 1), presence: PresenceRules(),
                users: users, devices: devices))
    }

    private func phone() -> ConnectionStatus { devices.status(of: DeviceKey.of(user: "ada", session: "phone")) }
    private func laptop() -> ConnectionStatus { devices.status(of: DeviceKey.of(user: "ada", session: "laptop")) }

    @Test func aPhoneIsAwayWhileItsUserIsStillThereOnALaptop() throws {
        let stage = stage()
        stage.hub.connect(1, version: .v2, claims: Self.claims("phone"))
        stage.hub.connect(2, version: .v2, claims: Self.claims("laptop"))
        try stage.join("realtime:a", 1, #"{"app_state":"background"}"#)
        #expect(phone() == .live && laptop() == .live && users.status(of: "ada") == .live)
        try stage.disconnect(1)
        #expect(phone() == .inGrace(until: stage.now.monotonic + 20_000))
        #expect(users.status(of: "ada") == .live)
        try stage.tick(after: 20_000)
        #expect(phone() == .away && laptop() == .live)
        try stage.disconnect(2)
        #expect(laptop() == .away, "it had joined nothing")
        #expect(users.status(of: "ada") == .away)
        #expect(!users.hasTransitions && !devices.hasTransitions, "nobody takes them")
    }

    @Test func whoComesBackInTheWindowIsLive() throws {
        let stage = stage()
        stage.hub.connect(1, version: .v2, claims: Self.claims("phone"))
        try stage.join("realtime:a", 1)
        try stage.disconnect(1)
        try stage.tick(after: 1000)
        stage.hub.connect(1, version: .v2, claims: Self.claims("phone"))
        #expect(phone() == .live)
        try stage.tick(after: 60_000)
        #expect(phone() == .live)
    }

    @Test func aTokenWithoutASessionIsNoDevice() {
        let stage = stage()
        stage.hub.connect(1, version: .v2, claims: Self.claims(nil))
        #expect(users.status(of: "ada") == .live)
        #expect(devices.count == 0)
        #expect(Self.claims("").session == nil)
    }
}
