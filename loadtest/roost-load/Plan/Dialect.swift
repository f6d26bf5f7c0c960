import Wire

/// How a Phoenix server is spoken to.
struct Dialect: Codable, Sendable {
    enum Version: String, Codable, Sendable {
        /// 1.0.0: JSON objects.
        case objects = "1"
        /// 2.0.0: JSON arrays of five, and binary frames.
        case arrays = "2"
    }
    var version = Version.arrays
    var topicPrefix = "realtime:"
    /// What broadcasts are called.
    var event = "m"
    /// Supabase's joins have a `config`, and its broadcasts an envelope; plain Phoenix has neither.
    var isPlain = false
    /// Whether broadcasts go out as binary frames, as supabase-js sends them.
    var isBinary = false

    func topic(_ name: String) -> String { topicPrefix + name }

    /// - Parameters:
    ///   - config: the members of `config`, as JSON.
    ///   - bearer: what follows `config`.
    func join(_ topic: String, ref: String, config: String = "", bearer: String = "") -> [UInt8] {
        let payload = isPlain ? "{}" : #"{"config":{\#(config)}\#(bearer)}"#
        return text(joinRef: ref, ref: ref, topic, "phx_join", payload)
    }

    func leave(_ topic: String, joinRef: String) -> [UInt8] {
        text(joinRef: joinRef, ref: joinRef + "00", topic, "phx_leave", "{}")
    }

    /// - Parameter payload: as JSON; nil to be absent no longer.
    func presence(_ topic: String, joinRef: String, track payload: String?) -> [UInt8] {
        let body = payload.map { #""event":"track","payload":\#($0)"# } ?? #""event":"untrack""#
        return text(joinRef: joinRef, ref: "2", topic, "presence", #"{"type":"presence",\#(body)}"#)
    }

    var heartbeat: [UInt8] { text(joinRef: nil, ref: "h", "phoenix", "heartbeat", "{}") }

    /// A broadcast whose payload is an object: `members` begin it, and the stamp ends it, as `t`.
    func broadcast(_ topic: String, joinRef: String, event: String, members: String = "") -> MessageTemplate {
        let (head, tail) = (#"{\#(members)"t":""#, #""}"#)
        guard !isPlain else {
            let (before, after) = around(joinRef: joinRef, topic, event)
            return MessageTemplate(.text, before + head, tail + after)
        }
        guard !isBinary else {
            let sizes = [joinRef, "2", topic, event].map { UInt8(truncatingIfNeeded: $0.utf8.count) }
            let bytes = [3] + sizes + [0, 1] + (joinRef + "2" + topic + event + head).utf8
            return MessageTemplate(.binary, bytes, Array(tail.utf8))
        }
        let (before, after) = around(joinRef: joinRef, topic, "broadcast")
        let name = String(decoding: JSONString.encode(event), as: UTF8.self)
        return MessageTemplate(
            .text, before + #"{"type":"broadcast","event":\#(name),"payload":"# + head, tail + "}" + after)
    }

    private func text(joinRef: String?, ref: String, _ topic: String, _ event: String, _ payload: String) -> [UInt8] {
        let (before, after) = around(joinRef: joinRef, ref: ref, topic, event)
        return OutgoingFrame.make(.text, (before + payload + after).utf8)
    }

    /// What stands before and behind the payload.
    private func around(joinRef: String?, ref: String = "2", _ topic: String, _ event: String) -> (String, String) {
        let join = joinRef.map { #""\#($0)""# } ?? "null"
        let (topic, event) = (JSONString.encode(topic), JSONString.encode(event))
        let names = [topic, event].map { String(decoding: $0, as: UTF8.self) }
        return switch version {
        case .arrays: (#"[\#(join),"\#(ref)",\#(names[0]),\#(names[1]),"#, "]")
        case .objects:
            (#"{"topic":\#(names[0]),"event":\#(names[1]),"ref":"\#(ref)","join_ref":\#(join),"payload":"#, "}")
        }
    }
}
