import Foundation
import RoostClient
import Testing

@Suite struct TokenRefresherTests {
    /// A token that nobody signed, which is all that a client looks at.
    static func token(expiringAt exp: Double, _ name: String = "") -> String {
        func part(_ text: String) -> String {
            Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
                .replacing("=", with: "")
        }
        return "\(part("{\"alg\":\"none\"}")).\(part("{\"exp\":\(exp),\"name\":\"ü\(name)\"}")).x"
    }

    private func online(lifetime: Double) -> ClientHarness {
        let client = ClientHarness()
        client.openRoom()
        client.goOnline(token: Self.token(expiringAt: client.epoch + lifetime))
        client.subscribe()
        client.answerJoin()
        return client
    }

    /// As the hub answers heartbeats, so that time can pass.
    private func pass(_ client: ClientHarness, _ seconds: Int) {
        for _ in 0..<seconds {
            client.pass(.seconds(1))
            client.hear("[null,null,\"phoenix\",\"phx_reply\",{}]")
        }
    }

    @Test func expIsReadFromAnyToken() {
        #expect(TokenClaims(Self.token(expiringAt: 1_800_000_000)).expiresAt == 1_800_000_000)
        #expect(TokenClaims("sb_publishable_x").expiresAt == nil)
        #expect(TokenClaims("a.b.c").expiresAt == nil)
        #expect(TokenClaims("").expiresAt == nil)
    }

    @Test func aNewOneIsAskedForAMinuteBefore() {
        let client = online(lifetime: 600)
        pass(client, 539)
        #expect(client.asked.count == 1)
        pass(client, 2)
        #expect(client.asked.count == 2)
    }

    @Test func aShortLifeIsUsedToFourFifths() {
        let client = online(lifetime: 50)
        pass(client, 39)
        #expect(client.asked.count == 1)
        pass(client, 2)
        #expect(client.asked.count == 2)
    }

    @Test func theNewOneIsSaidOnJoinedChannels() {
        let client = online(lifetime: 600)
        pass(client, 541)
        let fresh = Self.token(expiringAt: client.epoch + 5000, "fresh")
        client.giveToken(fresh)
        #expect(client.last("access_token")?.payload["access_token"]?.string == fresh)
        #expect(client.joins == 1)
        // The next join brings it, too.
        client.socketEnds()
        client.goOnline(token: fresh)
        #expect(client.last("phx_join")?.payload["access_token"]?.string == fresh)
    }

    @Test func theSameOneAgainIsNotSaidAndAskedForAnew() {
        let client = online(lifetime: 600)
        pass(client, 541)
        client.giveToken(Self.token(expiringAt: client.epoch + 600))
        #expect(client.last("access_token") == nil)
        // In the last fifth of what is left.
        pass(client, 46)
        #expect(client.asked.count == 2)
        pass(client, 2)
        #expect(client.asked.count == 3)
    }

    @Test func aTokenThatLooksExpiredByOurClockIsNotAskedForForever() {
        let client = online(lifetime: -3600)
        pass(client, 600)
        #expect(client.asked.count == 1)
    }

    @Test(arguments: [
        "InvalidJWTToken: Token has expired 5 seconds ago", "MalformedJWT: The token provided is not a valid JWT",
    ])
    func aJoinThatIsRefusedForItsTokenGetsAnotherOne(reason: String) {
        let client = ClientHarness()
        client.openRoom()
        client.goOnline(token: "stale")
        client.subscribe()
        client.refuseLast("phx_join", reason)
        client.pass(.zero)
        #expect(client.asked.count == 2)
        client.giveToken("fresh")
        // At once, not after a wait.
        #expect(client.last("phx_join")?.payload["access_token"]?.string == "fresh")
        client.answerJoin()
        #expect(client.answers[100] == .some(nil))
    }

    @Test func aHubThatRefusesEachOneIsNotFlooded() {
        let client = ClientHarness()
        client.openRoom()
        client.goOnline(token: "0")
        client.subscribe()
        client.random = 0.999
        for number in 1...60 {
            client.refuseLast("phx_join", "InvalidJWTToken: Token has expired 5 seconds ago")
            client.pass(.seconds(1))
            client.hear("[null,null,\"phoenix\",\"phx_reply\",{}]")
            if client.asked.count > client.opened.count { client.giveToken("\(number)") }
        }
        #expect(client.asked.count < 25)
    }

    @Test func aChannelWhoseTokenRanOutComesBackWithAnother() {
        let client = ClientHarness()
        client.openRoom()
        client.goOnline(token: "old")
        client.subscribe()
        client.answerJoin()
        let ref = client.last("phx_join")?.message.ref
        client.hear(
            "phx_error", "{\"reason\":\"InvalidJWTToken: Token has expired 1 seconds ago\"}", joinRef: ref, ref: ref)
        client.pass(.zero)
        #expect(client.asked.count == 2)
        client.giveToken("new")
        #expect(client.joins == 2)
        #expect(client.last("phx_join")?.payload["access_token"]?.string == "new")
    }
}
