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

/// How a WebSocket server is spoken to that knows nothing of channels: ready-made frames.
///
/// `{channel}` stands for the number of a channel. A backslash begins an escape: `\r`, `\n`, `\\`, `\xNN`.
struct RawProtocol: Codable, Sendable {
    var subscribeFrames: [String] = []
    /// What a publisher says first.
    var greetingFrames: [String] = []
    /// Messages that a subscriber waits for before it counts as joined.
    var acknowledgements = 0
    var publisherAcknowledgements = 0
    var prefix = ""
    var suffix = ""
    var isBinary = false

    static func bytes(_ text: String, channel: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "{"), rest.starts(with: "channel}".utf8) {
                rest = rest.dropFirst("channel}".utf8.count)
                bytes += String(channel).utf8
            } else if byte == UInt8(ascii: "\\") {
                bytes.append(try escape(&rest, in: text))
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }

    private static func escape(_ rest: inout Substring.UTF8View, in text: String) throws -> UInt8 {
        switch rest.popFirst() {
        case UInt8(ascii: "r"): return 13
        case UInt8(ascii: "n"): return 10
        case UInt8(ascii: "\\"): return UInt8(ascii: "\\")
        case UInt8(ascii: "x"):
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            guard digits.count == 2, let value = UInt8(digits, radix: 16) else { fallthrough }
            rest = rest.dropFirst(2)
            return value
        default: throw LoadFailure(#"`\#(text)` has an escape that is none of \r, \n, \\ and \xNN."#)
        }
    }
}

/// A message that is the same but for its stamp.
struct MessageTemplate {
    private let kind: OutgoingFrame.Kind
    private let head: [UInt8]
    private let tail: [UInt8]

    init(_ kind: OutgoingFrame.Kind, _ head: some Sequence<UInt8>, _ tail: some Sequence<UInt8>) {
        self.kind = kind
        self.head = Array(head)
        self.tail = Array(tail)
    }

    init(_ kind: OutgoingFrame.Kind, _ head: String, _ tail: String) { self.init(kind, head.utf8, tail.utf8) }

    /// - Parameter size: of the stamp with what fills it up, in bytes.
    func frame(_ stamp: [UInt8], size: Int = 0) -> [UInt8] {
        let padding = repeatElement(UInt8(ascii: "x"), count: max(0, size - stamp.count))
        return OutgoingFrame.make(kind, head + stamp + padding + tail)
    }
}
