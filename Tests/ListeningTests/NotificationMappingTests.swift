import Hub
import Listening
import Testing
import Wire

/// What becomes of a notification, without a database.
@Suite struct NotificationMappingTests {
    /// `private topic / payload of the broadcast event`, or why there is none.
    private func outcome(_ mapping: String, _ payload: String) throws -> String {
        let mapping = try #require(try NotificationMapping.parseList(mapping).first)
        do throws(UndeliverableNotification) {
            let (key, message) = try mapping.broadcast(of: NotificationPayload(Array(payload.utf8)))
            guard case .text(let bytes) = message else { return "binary" }
            return (key.isPrivate ? "private " : "public ") + key.topic + " " + String(decoding: bytes, as: UTF8.self)
        } catch {
            return "\(error)"
        }
    }

    private func message(_ event: String, _ payload: String) -> String {
        #"{"event":"\#(event)","payload":\#(payload),"type":"broadcast"}"#
    }

    @Test("fields make the topic and the event, and the object is passed on as it stands")
    func anObject() throws {
        let payload = #"{"conversation_id": 7, "body":"Hi \u00e9", "n": 1.50, "n": 2}"#
        #expect(
            try outcome("messages -> room:{conversation_id} / new_message", " \(payload) ")
                == "private realtime:room:7 " + message("new_message", payload))
        #expect(
            try outcome("messages -> public {n}/x / {body}", payload)
                == "public realtime:2/x " + message("Hi é", payload))
    }

    @Test(
        "a field is a string, a number or a boolean, at any depth",
        arguments: [
            (#"{"a":"x"}"#, "{a}", "x"), (#"{"a":-1.5e3}"#, "{a}", "-1.5e3"), (#"{"a":false}"#, "{a}", "false"),
            (#"{"r":{"a":{"b":12345678901234567890}}}"#, "{r.a.b}", "12345678901234567890"),
            (#"{"a":"{b}","b":"c"}"#, "{a}", "{b}"), (#"{"a":"x"}"#, "{{{a}}}", "{x}"),
        ])
    func fields(payload: String, template: String, topic: String) throws {
        #expect(try outcome("c -> \(template) / e", payload) == "private realtime:\(topic) " + message("e", payload))
    }

    @Test(
        "what is no value for a topic is not delivered",
        arguments: [
            ("{}", #"field("a")"#), (#"{"a":null}"#, #"field("a")"#), (#"{"a":{"b":1}}"#, #"field("a")"#),
            (#"{"a":[1]}"#, #"field("a")"#), (#"["a"]"#, #"field("a")"#), ("a", #"field("a")"#), ("", #"field("a")"#),
            (#"{"a":1"#, #"field("a")"#), (#"{"a":""}"#, "topic"), (#"{"a":"x\u0000y"}"#, "topic"),
        ])
    func undeliverable(payload: String, reason: String) throws {
        #expect(try outcome("c -> {a} / e", payload) == reason)
    }

    @Test("a path that leads through something else than an object is a missing field")
    func brokenPath() throws {
        #expect(try outcome("c -> {a.b} / e", #"{"a":"b"}"#) == #"field("a.b")"#)
    }

    @Test("an event that is empty, or that only the hub sends, is not delivered")
    func events() throws {
        #expect(try outcome("c -> t / {e}", #"{"e":""}"#) == "event")
        #expect(try outcome("c -> live-activity:{a} / summary", #"{"a":1}"#) == "event")
    }

    @Test(
        "JSON that is no object, and text, go under the key payload",
        arguments: [
            ("[1, 2]", "[1, 2]"), ("5", "5"), ("null", "null"), (#""t""#, #""t""#),
            ("plain \"text\"", #""plain \"text\"""#),
            ("", #""""#), ("{a}", #""{a}""#), ("{\"a\":1} x", #""{\"a\":1} x""#),
        ])
    func noObject(payload: String, value: String) throws {
        #expect(try outcome("c -> t / e", payload) == "private realtime:t " + message("e", #"{"payload":\#(value)}"#))
    }

    @Test("text that is not UTF-8 is repaired")
    func brokenText() throws {
        let (_, message) = try #require(try NotificationMapping.parseList("c -> t / e").first)
            .broadcast(of: NotificationPayload([0x61, 0xFF]))
        guard case .text(let bytes) = message else { Issue.record("a binary message"); return }
        #expect(try JSON(parsing: bytes)["payload"]?["payload"]?.string == "a\u{FFFD}")
    }

    @Test("a log line says nothing of the payload")
    func reasons() {
        #expect(
            UndeliverableNotification.field("a.b").reason == "their payload has no text, number or boolean at {a.b}")
    }

    @Test(
        "what a mapping may reach is told of a gap",
        arguments: [
            ("c -> room:{id} / e", "room:1", true), ("c -> room:{id} / e", "room:", true),
            ("c -> room:{id} / e", "rooms:1", false), ("c -> room:{id}:x / e", "room:1:x", true),
            ("c -> room:{id}:x / e", "room:1:y", false), ("c -> {a}:{b} / e", "1:2", true),
            ("c -> {a}:{b} / e", "12", false), ("c -> jobs / e", "jobs", true), ("c -> jobs / e", "jobs2", false),
            ("c -> a*b / e", "a*b", true), ("c -> a*b / e", "axb", false),
        ])
    func reach(mapping: String, topic: String, isReached: Bool) throws {
        let reach = try #require(try NotificationMapping.parseList(mapping).first).reach
        #expect(reach.matches(ChannelKey(topic: "realtime:" + topic, isPrivate: true)) == isReached)
        #expect(!reach.matches(ChannelKey(topic: "realtime:" + topic, isPrivate: false)))
    }
}
