import Hub
import TestSupport
import Testing
import Wire

@Suite struct UserPresenceTests {
    private func time(_ milliseconds: Int64) -> HubTime {
        HubTime(monotonic: milliseconds, unix: 1_000_000 + milliseconds)
    }

    private func words(_ users: UserPresence) -> [String] {
        users.takeTransitions().map { "\($0.user) \($0.isOnline ? "on" : "off") \($0.at - 1_000_000)" }
    }

    @Test func aUserIsOnlineWhileOneSocketLivesOrIsInItsWindow() {
        let users = UserPresence()
        users.socketOpened("ada", at: time(1))
        users.socketOpened("ada", at: time(2))
        #expect(words(users) == ["ada on 1"])
        users.socketClosed("ada", window: 2000, at: time(10))
        users.advanceTime(to: time(100_000))
        #expect(words(users) == [])
        users.socketClosed("ada", window: 2000, at: time(100_000))
        users.advanceTime(to: time(101_999))
        #expect(users.isOnline("ada"))
        users.socketOpened("ada", at: time(101_999))
        users.advanceTime(to: time(200_000))
        users.socketClosed("ada", window: 2000, at: time(200_000))
        users.advanceTime(to: time(202_000))
        #expect(words(users) == ["ada off 200000"], "when it was lost, not when its window ended")
        #expect(!users.isOnline("ada"))
    }

    @Test func aCleanEndShowsAtOnce() {
        let users = UserPresence()
        users.socketOpened("ada", at: time(1))
        users.socketClosed("ada", window: 0, at: time(5))
        #expect(words(users) == ["ada off 5"], "the newest word only")
    }

    /// The longest window of several sockets counts.
    @Test func aSecondLossDoesNotShortenTheWindow() {
        let users = UserPresence()
        users.socketOpened("ada", at: time(1))
        users.socketOpened("ada", at: time(1))
        users.socketClosed("ada", window: 20_000, at: time(10))
        users.socketClosed("ada", window: 0, at: time(20))
        users.advanceTime(to: time(20_009))
        #expect(users.isOnline("ada"))
        users.advanceTime(to: time(20_010))
        #expect(!users.isOnline("ada"))
    }

    @Test func whatCouldNotBeWrittenComesAgainUnlessThereIsANewerWord() {
        let users = UserPresence()
        users.socketOpened("ada", at: time(1))
        users.socketOpened("bob", at: time(2))
        let batch = users.takeTransitions()
        users.socketClosed("bob", window: 0, at: time(3))
        users.giveBack(batch)
        #expect(words(users) == ["ada on 1", "bob off 3"])
    }

    @Test func duringADrainNobodyGoes() {
        let users = UserPresence()
        users.socketOpened("ada", at: time(1))
        _ = users.takeTransitions()
        users.startDraining()
        users.socketClosed("ada", window: 0, at: time(2))
        users.advanceTime(to: time(1_000_000))
        #expect(words(users) == [])
    }

    @Test func whoWasOnlineBeforeTheHubStartedHasAWhileToComeBack() {
        let users = UserPresence()
        users.restoreUsers([(user: "ada", seen: 1_000_000 - 50), (user: "bob", seen: 1_000_000 - 60)], until: 30_000)
        users.socketOpened("ada", at: time(10_000))
        users.advanceTime(to: time(29_999))
        #expect(words(users) == [])
        users.advanceTime(to: time(30_000))
        #expect(words(users) == ["bob off -60"])
    }

    @Test func theSocketsOfALoopMakeUsersOnline() throws {
        let users = UserPresence()
        let stage = Stage(presence: PresenceRules(), users: users)
        stage.connect(1, subject: "ada")
        stage.connect(2)
        try stage.join("realtime:a", 2, "{}")
        #expect(users.takeTransitions().map(\.user) == ["ada"])
        try stage.disconnect(2)
        // It joined nothing, so there is nothing to come back for.
        try stage.disconnect(1)
        #expect(users.takeTransitions().map(\.isOnline) == [false])
        stage.connect(1, subject: "ada")
        try stage.join("realtime:a", 1, #"{"app_state":"background"}"#)
        try stage.disconnect(1)
        try stage.tick(after: 19_999)
        #expect(users.isOnline("ada"))
        try stage.tick(after: 1)
        #expect(!users.isOnline("ada"))
    }
}

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
                loop: 0, verifier: TestVerifier(), random: SeededGenerator(seed: 1), presence: PresenceRules(),
                users: users, devices: devices))
    }

    private func device(_ session: Name, _ stage: Stage) -> ConnectionStatus {
        devices.status(of: DeviceKey.makeKey(user: "ada", session: session), at: stage.now.monotonic)
    }
    private func user(_ stage: Stage) -> ConnectionStatus { users.status(of: "ada", at: stage.now.monotonic) }

    @Test func aPhoneIsAwayWhileItsUserIsStillThereOnALaptop() throws {
        let stage = stage()
        stage.hub.connect(1, version: .v2, claims: Self.claims("phone"))
        stage.hub.connect(2, version: .v2, claims: Self.claims("laptop"))
        try stage.join("realtime:a", 1, #"{"app_state":"background"}"#)
        #expect(device("phone", stage) == .live && device("laptop", stage) == .live && user(stage) == .live)
        try stage.disconnect(1)
        #expect(device("phone", stage) == .inGrace(until: stage.now.monotonic + 20_000))
        #expect(user(stage) == .live)
        try stage.tick(after: 20_000)
        #expect(device("phone", stage) == .away && device("laptop", stage) == .live)
        try stage.disconnect(2)
        #expect(device("laptop", stage) == .away, "it had joined nothing")
        #expect(user(stage) == .away)
        #expect(!users.hasTransitions && !devices.hasTransitions, "nobody takes them")
    }

    @Test func whoComesBackInTheWindowIsLive() throws {
        let stage = stage()
        stage.hub.connect(1, version: .v2, claims: Self.claims("phone"))
        try stage.join("realtime:a", 1)
        try stage.disconnect(1)
        try stage.tick(after: 1000)
        stage.hub.connect(1, version: .v2, claims: Self.claims("phone"))
        #expect(device("phone", stage) == .live)
        try stage.tick(after: 60_000)
        #expect(device("phone", stage) == .live)
    }

    @Test func aTokenWithoutASessionIsNoDevice() {
        let stage = stage()
        stage.hub.connect(1, version: .v2, claims: Self.claims(nil))
        #expect(user(stage) == .live)
        #expect(devices.count == 0)
        #expect(Self.claims("").session == nil)
    }
}
