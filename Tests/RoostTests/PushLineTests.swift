import Hub
import Push
import Testing

@testable import roost

struct PushLineTests {
    let defaults = PushLine.Defaults(environment: .production, bundle: "com.example.app", deadline: 99)

    func parse(_ text: String) throws -> Push { try PushLine(parsing: Array(text.utf8), defaults).push }

    @Test func readsAllThereIs() throws {
        let push = try parse(
            """
            {"token":"00112233445566778899AABBCCDDEEFF","environment":"sandbox","type":"liveactivity","bundleId":"a.b",
             "payload":{ "aps" : {} },"id":"EABEAE54-14A8-11E5-B60B-1697F925EC7B","collapseId":"c","priority":10,
             "expiration":1790000000,"lane":"l","replaces":true}
            """)
        let token = try #require(PushToken("00112233445566778899aabbccddeeff"))
        #expect(push.target == .device(PushDestination(token: token, environment: .sandbox, bundle: "a.b")))
        #expect(push.id.text == "eabeae54-14a8-11e5-b60b-1697f925ec7b")
        #expect((push.type, push.priority, push.expiration) == (.liveActivity, 10, 1_790_000_000))
        #expect((push.collapseID, push.lane, push.replaces, push.deadline) == ("c", "l", true, 99))
        #expect(push.payload == Array("{ \"aps\" : {} }".utf8) && !push.resendsWhenUnanswered)
    }

    @Test func fillsInTheRest() throws {
        let push = try parse("{\"channel\":\"x==\",\"payload\":{}}")
        #expect(push.target == .channel(id: "x==", environment: .production, bundle: "com.example.app"))
        #expect((push.type, push.priority, push.expiration) == (.alert, 10, 0))
        #expect(try parse("{\"channel\":\"x\",\"payload\":{},\"type\":\"background\"}").priority == 5)
    }

    @Test(arguments: [
        ("x", "JSON"), ("[]", "JSON"), ("{\"payload\":{}}", "token"), ("{\"token\":\"zz\",\"payload\":{}}", "token"),
        ("{\"channel\":\"x\"}", "payload"), ("{\"channel\":\"x\",\"payload\":\"{}\"}", "payload"),
        ("{\"channel\":\"x\",\"payload\":{},\"type\":\"loud\"}", "type"),
        ("{\"channel\":\"x\",\"payload\":{},\"id\":\"7\"}", "id"),
        ("{\"channel\":\"x\",\"payload\":{},\"environment\":\"moon\"}", "environment"),
    ])
    func saysWhatIsWrong(_ text: String, _ word: String) {
        let error = #expect(throws: PushLineError.self) { try parse(text) }
        #expect(error.map { "\($0)" }?.contains(word) == true)
    }
}
