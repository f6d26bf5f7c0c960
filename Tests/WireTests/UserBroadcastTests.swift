import Testing
import Wire

@Suite struct UserBroadcastTests {
    private func text(
        _ payload: String, event: String = "cursor", _ encoding: UserBroadcast.Encoding = .json, metadata: String? = nil
    ) -> String? {
        let user = UserBroadcast(
            event: event, encoding: encoding, payload: Array(payload.utf8)[...],
            metadata: metadata.map { Array($0.utf8) })
        return user.textPayload().map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func jsonBecomesABroadcastPayload() {
        #expect(text(#"{"x": 1.0}"#) == #"{"event":"cursor","payload":{"x": 1.0},"type":"broadcast"}"#)
        #expect(text(" [1]\n") == #"{"event":"cursor","payload":[1],"type":"broadcast"}"#)
        #expect(text("{}", event: "a\"\n") == #"{"event":"a\"\n","payload":{},"type":"broadcast"}"#)
    }

    @Test func metadataGoesAlong() {
        #expect(
            text("{}", metadata: #"{"id":"m-1"}"#)
                == #"{"event":"cursor","payload":{},"type":"broadcast","meta":{"id":"m-1"}}"#)
    }

    @Test func rawBytesHaveNoText() { #expect(text(#"{"x":1}"#, .raw) == nil) }

    @Test(arguments: ["", "{", "{}{}", "nope", #"{"x":}"#, "\u{FEFF}{}"])
    func whatIsNoJSONHasNoText(_ payload: String) { #expect(text(payload) == nil) }
}
