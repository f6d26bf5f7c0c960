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
