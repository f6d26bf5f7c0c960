import Hub
import Push
import Testing
import Wire

@Suite struct ActivityPayloadTests {
    private func json(_ text: String) throws -> JSON { try JSON(parsing: Array(text.utf8)) }
    private func text(_ payload: ActivityPayload) throws -> String {
        String(decoding: try payload.bytes(), as: UTF8.self)
    }

    /// Numbers, order, a repeated key and an escape that a re-encoder would change.
    private let odd = #"{"b":1.50,"a":{"b":1e3, "b":2},"c":"\u00e9\/"}"#

    @Test func passesTheContentStateThroughUnchanged() throws {
        let payload = ActivityPayload(.update(), timestamp: 10, contentState: try json(odd), staleDate: 20)
        #expect(
            try text(payload) == #"{"aps":{"timestamp":10,"event":"update","content-state":\#(odd),"stale-date":20}}"#)
        #expect(payload.event == .update)
    }

    @Test func updatesMayRing() throws {
        let alert = try ActivityAlert(checking: json(#"{"title":{"loc-key":"K"},"body": "B","sound":"s"}"#))
        let payload = ActivityPayload(
            .update(alert: alert), timestamp: 10, contentState: try json("{}"), staleDate: 20, relevanceScore: 0.5)
        #expect(
            try text(payload) == """
                {"aps":{"timestamp":10,"event":"update","content-state":{},"stale-date":20,"relevance-score":0.5,\
                "alert":{"title":{"loc-key":"K"},"body": "B","sound":"s"}}}
                """)
    }

    @Test func endsWithAndWithoutAState() throws {
        let end = ActivityPayload(.end(dismissal: 5), timestamp: 10, contentState: try json(odd), staleDate: 20)
        #expect(
            try text(end) == """
                {"aps":{"timestamp":10,"event":"end","content-state":\(odd),"stale-date":20,"dismissal-date":5}}
                """)
        let bare = ActivityPayload(.end(), timestamp: 10, contentState: nil, staleDate: 20)
        #expect(try text(bare) == #"{"aps":{"timestamp":10,"event":"end","stale-date":20}}"#)
    }

    @Test(
        arguments: [
            (nil, ""), (.token, #","input-push-token":1"#), (.channel("dHN0"), #","input-push-channel":"dHN0""#),
        ] as [(ActivityStart.Input?, String)])
    func startsByPush(_ input: ActivityStart.Input?, _ rest: String) throws {
        let start = ActivityStart(attributesType: "TripAttributes", attributes: try json(#"{"id" : 1}"#), input: input)
        let payload = ActivityPayload(
            .start(start, alert: ActivityAlert(title: "T", body: "B")), timestamp: 10, contentState: try json("{}"),
            staleDate: 20)
        #expect(
            try text(payload) == """
                {"aps":{"timestamp":10,"event":"start","content-state":{},"stale-date":20,\
                "alert":{"title":"T","body":"B","sound":"default"},"attributes-type":"TripAttributes",\
                "attributes":{"id" : 1}\(rest)}}
                """)
    }

    @Test func refusesWhatAPhoneWouldDrop() throws {
        func update(_ state: String, relevance: Double? = nil) throws -> ActivityPayload {
            ActivityPayload(
                .update(), timestamp: 1, contentState: try json(state), staleDate: 2, relevanceScore: relevance)
        }
        #expect(throws: PayloadError.noObject(key: "content-state")) { try update("[]").bytes() }
        #expect(throws: PayloadError.badRelevanceScore) { try update("{}", relevance: .nan).bytes() }
        #expect(throws: PayloadError.noObject(key: "content-state")) {
            try ActivityPayload(.update(), timestamp: 1, contentState: nil, staleDate: 2).bytes()
        }
        let start = ActivityStart(attributesType: "T", attributes: .null)
        #expect(throws: PayloadError.noObject(key: "attributes")) {
            try ActivityPayload(
                .start(start, alert: ActivityAlert(title: "", body: "")), timestamp: 1, contentState: .emptyObject,
                staleDate: 2
            ).bytes()
        }
        for alert in ["[]", "{}", #"{"title":"T"}"#, #"{"title":"T","body":1}"#, #"{"title":{},"body":"B"}"#] {
            #expect(throws: PayloadError.badAlert) { try ActivityAlert(checking: json(alert)) }
        }
    }

    @Test func isNeverCut() throws {
        func sized(_ count: Int) throws -> ActivityPayload {
            let state = #"{"a":"\#(String(repeating: "x", count: count))"}"#
            return ActivityPayload(.update(), timestamp: 1, contentState: try json(state), staleDate: 2)
        }
        let room = 4096 - (try sized(0).bytes().count)
        #expect(try sized(room).bytes().count == 4096)
        #expect(throws: PayloadError.tooLarge(bytes: 4097, limit: 4096)) { try sized(room + 1).bytes() }
    }

    @Test func channelsTakeMore() throws {
        func sized(_ count: Int) throws -> ChannelBroadcast {
            let state = #"{"a":"\#(String(repeating: "x", count: count))"}"#
            return .end(channel: "dHN0", contentState: try json(state), timestamp: 1, staleDate: 2, dismissal: 3)
        }
        let room = 5120 - (try sized(0).bytes().count)
        #expect(try sized(room).bytes().count == 5120)
        #expect(throws: PayloadError.tooLarge(bytes: 5121, limit: 5120)) { try sized(room + 1).bytes() }
        let update = ChannelBroadcast.update(
            channel: "dHN0", contentState: try json(odd), timestamp: 1, staleDate: 2,
            alert: ActivityAlert(title: "T", body: "B", sound: nil))
        #expect(
            String(decoding: try update.bytes(), as: UTF8.self) == """
                {"aps":{"timestamp":1,"event":"update","content-state":\(odd),"stale-date":2,\
                "alert":{"title":"T","body":"B"}}}
                """)
    }
}
