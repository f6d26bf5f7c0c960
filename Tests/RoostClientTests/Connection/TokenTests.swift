import Foundation
import RoostClient
import Testing

@Suite struct TokenTests {
    /// A token that nobody signed, which is all that a client looks at.
    static func token(expiringAt exp: Double, _ name: String = "") -> String {
        func part(_ text: String) -> String {
            Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
                .replacing("=", with: "")
        }
        return "\(part("{\"alg\":\"none\"}")).\(part("{\"exp\":\(exp),\"name\":\"ü\(name)\"}")).x"
    }

    private func online(lifetime: Double) -> Desk {
        let desk = Desk()
        desk.openRoom()
        desk.goOnline(token: Self.token(expiringAt: desk.epoch + lifetime))
        desk.subscribe()
        desk.answerJoin()
        return desk
    }

    /// As the hub answers heartbeats, so that time can pass.
    private func pass(_ desk: Desk, _ seconds: Int) {
        for _ in 0..<seconds {
            desk.pass(.seconds(1))
            desk.hear("[null,null,\"phoenix\",\"phx_reply\",{}]")
        }
    }

    @Test func expIsReadFromAnyToken() {
        #expect(TokenClaims(Self.token(expiringAt: 1_800_000_000)).expiresAt == 1_800_000_000)
        #expect(TokenClaims("sb_publishable_x").expiresAt == nil)
        #expect(TokenClaims("a.b.c").expiresAt == nil)
        #expect(TokenClaims("").expiresAt == nil)
    }

    @Test func aNewOneIsAskedForAMinuteBefore() {
        let desk = online(lifetime: 600)
        pass(desk, 539)
        #expect(desk.asked.count == 1)
        pass(desk, 2)
        #expect(desk.asked.count == 2)
    }

    @Test func aShortLifeIsUsedToFourFifths() {
        let desk = online(lifetime: 50)
        pass(desk, 39)
        #expect(desk.asked.count == 1)
        pass(desk, 2)
        #expect(desk.asked.count == 2)
    }

    @Test func theNewOneIsSaidOnJoinedChannels() {
        let desk = online(lifetime: 600)
        pass(desk, 541)
        let fresh = Self.token(expiringAt: desk.epoch + 5000, "fresh")
        desk.giveToken(fresh)
        #expect(desk.last("access_token")?.payload["access_token"]?.string == fresh)
        #expect(desk.joins == 1)
        // The next join brings it, too.
        desk.socketEnds()
        desk.goOnline(token: fresh)
        #expect(desk.last("phx_join")?.payload["access_token"]?.string == fresh)
    }

    @Test func theSameOneAgainIsNotSaidAndAskedForAnew() {
        let desk = online(lifetime: 600)
        pass(desk, 541)
        desk.giveToken(Self.token(expiringAt: desk.epoch + 600))
        #expect(desk.last("access_token") == nil)
        // In the last fifth of what is left.
        pass(desk, 46)
        #expect(desk.asked.count == 2)
        pass(desk, 2)
        #expect(desk.asked.count == 3)
    }

    @Test func aTokenThatLooksExpiredByOurClockIsNotAskedForForever() {
        let desk = online(lifetime: -3600)
        pass(desk, 600)
        #expect(desk.asked.count == 1)
    }

    @Test(arguments: [
        "InvalidJWTToken: Token has expired 5 seconds ago", "MalformedJWT: The token provided is not a valid JWT",
    ])
    func aJoinThatIsRefusedForItsTokenGetsAnotherOne(reason: String) {
        let desk = Desk()
        desk.openRoom()
        desk.goOnline(token: "stale")
        desk.subscribe()
        desk.refuseLast("phx_join", reason)
        desk.pass(.zero)
        #expect(desk.asked.count == 2)
        desk.giveToken("fresh")
        // At once, not after a wait.
        #expect(desk.last("phx_join")?.payload["access_token"]?.string == "fresh")
        desk.answerJoin()
        #expect(desk.answers[100] == .some(nil))
    }

    @Test func aHubThatRefusesEachOneIsNotFlooded() {
        let desk = Desk()
        desk.openRoom()
        desk.goOnline(token: "0")
        desk.subscribe()
        desk.random = 0.999
        for number in 1...60 {
            desk.refuseLast("phx_join", "InvalidJWTToken: Token has expired 5 seconds ago")
            desk.pass(.seconds(1))
            desk.hear("[null,null,\"phoenix\",\"phx_reply\",{}]")
            if desk.asked.count > desk.opened.count { desk.giveToken("\(number)") }
        }
        #expect(desk.asked.count < 25)
    }

    @Test func aChannelWhoseTokenRanOutComesBackWithAnother() {
        let desk = Desk()
        desk.openRoom()
        desk.goOnline(token: "old")
        desk.subscribe()
        desk.answerJoin()
        let ref = desk.last("phx_join")?.message.ref
        desk.hear(
            "phx_error", "{\"reason\":\"InvalidJWTToken: Token has expired 1 seconds ago\"}", joinRef: ref, ref: ref)
        desk.pass(.zero)
        #expect(desk.asked.count == 2)
        desk.giveToken("new")
        #expect(desk.joins == 2)
        #expect(desk.last("phx_join")?.payload["access_token"]?.string == "new")
    }
}
