/// A reply of Redis (RESP2): a tree that owns its bytes.
package enum RedisValue: Sendable, Equatable {
    /// A short text such as `OK`.
    case status(String)
    /// The whole text of an error: a code in capitals, a space, words.
    case error(String)
    case integer(Int64)
    case bytes([UInt8])
    case array([RedisValue])
    case null

    /// The text of a status or of bytes; nil for anything else, and for bytes that are not UTF-8.
    package var text: String? {
        switch self {
        case .status(let text): text
        case .bytes(let bytes): String(validating: bytes, as: UTF8.self)
        default: nil
        }
    }

    package var elements: [RedisValue]? { if case .array(let elements) = self { elements } else { nil } }
}

/// An argument of a command.
package enum RedisArgument: Sendable, Equatable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    case text(String)
    case bytes([UInt8])
    case integer(Int64)

    package init(stringLiteral text: String) { self = .text(text) }
    package init(integerLiteral number: Int64) { self = .integer(number) }

    /// The upper bound of its length in bytes, without the framing on the wire.
    var size: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .integer: 20
        }
    }
}

extension [RedisArgument] {
    /// The upper bound of the whole command's length on the wire, in bytes.
    var commandSize: Int { reduce(16) { $0 + $1.size + 16 } }

    /// Appends the command in RESP, as an array of bulk strings.
    func encode(into output: inout [UInt8]) {
        func appendHeader(_ mark: UInt8, _ count: Int) {
            output.append(mark)
            output.append(contentsOf: String(count).utf8)
            output.append(13)
            output.append(10)
        }
        appendHeader(UInt8(ascii: "*"), count)
        for argument in self {
            switch argument {
            case .text(let text):
                appendHeader(UInt8(ascii: "$"), text.utf8.count)
                output.append(contentsOf: text.utf8)
            case .bytes(let bytes):
                appendHeader(UInt8(ascii: "$"), bytes.count)
                output.append(contentsOf: bytes)
            case .integer(let number):
                let text = String(number)
                appendHeader(UInt8(ascii: "$"), text.utf8.count)
                output.append(contentsOf: text.utf8)
            }
            output.append(13)
            output.append(10)
        }
    }
}
