import Hub
import Synchronization
import TestSupport
import Testing
import Wire

/// A user's sockets are counted at the door, where the token names one, else with the first join that does.
@Suite struct UserLimitTests {
    /// One socket each.
    private final class Limiter: UserConnectionLimiter {
        let users = Mutex<[Name]>([])
        let countsUsers = true

        func admitSocket(_ user: Name) -> Bool {
            users.withLock { users in
                if users.contains(user) { return false }
                users.append(user)
                return true
            }
        }

        func releaseSocket(_ user: Name) {
            users.withLock { users in
                if let index = users.firstIndex(of: user) { users.remove(at: index) } else { users.append("nobody") }
            }
        }

        var counted: [Name] { users.withLock { $0 } }
    }

    /// Tokens are the names of their users.
    private struct Names: TokenVerifier {
        func verifyToken(_ token: String, at now: HubTime) throws(Refusal) -> Claims {
            Claims(role: "anon", subject: Name(token), expiresAt: 10_000, json: Array("{}".utf8))
        }
    }

    private let limiter = Limiter()

    private func stage() -> Stage {
        var limits = HubLimits()
        limits.connectionsPerUser = 1
        let hub = Hub(
            loop: 0, limits: limits, verifier: Names(), random: SeededGenerator(seed: 1), userLimiter: limiter)
        return Stage(hub: hub)
    }

    private func join(_ stage: Stage, _ slot: Slot, as user: String, topic: String = "realtime:a") throws -> String {
        try stage.say(#"["1","1","\#(topic)","phx_join",{"config":{},"access_token":"\#(user)"}]"#, from: slot).first
            ?? ""
    }

    @Test func theFirstJoinWithAUserCounts() throws {
        let stage = stage()
        stage.connect(1)
        #expect(limiter.counted == [], "the key of a project names nobody")
        #expect(try join(stage, 1, as: "ada").contains(#""ok""#))
        #expect(try join(stage, 1, as: "ada", topic: "realtime:b").contains(#""ok""#))
        #expect(limiter.counted == ["ada"])
        try stage.disconnect(1)
        #expect(limiter.counted == [])
    }

    @Test func oneTooManyIsRefusedByJoin() throws {
        let stage = stage()
        for slot in Slot(1)...2 { stage.connect(slot) }
        _ = try join(stage, 1, as: "ada")
        #expect(
            try join(stage, 2, as: "ada")
                == #"2 ← ["1","1","realtime:a","phx_reply",{"status":"error","response":{"reason":"ConnectionRateLimitReached: Too many connected users: one user may have 1 sockets (limits.connections_per_user); close another first"}}]"#
        )
        #expect(stage.hub.refused == [.connectionsPerUser: 1])
        #expect(try join(stage, 2, as: "grace").contains(#""ok""#), "another user may use the socket")
        try stage.disconnect(1)
        #expect(limiter.counted == ["grace"])
    }

    @Test func aSocketIsCountedOnceWhoeverJoinsLater() throws {
        let stage = stage()
        stage.connect(1)
        _ = try join(stage, 1, as: "ada")
        #expect(try join(stage, 1, as: "grace", topic: "realtime:b").contains(#""ok""#))
        #expect(limiter.counted == ["ada"])
    }

    @Test func whomTheDoorCountedIsGivenBack() throws {
        let stage = stage()
        #expect(limiter.admitSocket("ada"))
        stage.hub.connect(
            1, version: .v2, claims: Claims(role: "anon", subject: "ada", expiresAt: 10_000, json: Array("{}".utf8)))
        #expect(try join(stage, 1, as: "ada").contains(#""ok""#))
        #expect(limiter.counted == ["ada"])
        try stage.disconnect(1)
        #expect(limiter.counted == [])
    }

    @Test func withoutAUserNothingCounts() throws {
        let stage = stage()
        stage.connect(1)
        #expect(try stage.join("realtime:a", 1).first?.contains(#""ok""#) == true)
        try stage.disconnect(1)
        #expect(limiter.counted == [])
    }
}
