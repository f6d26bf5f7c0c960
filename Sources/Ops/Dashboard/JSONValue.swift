import Wire

/// A JSON value that is about to be written (RFC 8259).
enum JSONValue {
    case object([(String, JSONValue)])
    case array([JSONValue])
    case text(String)
    case number(Double)
    case integer(Int)
    case bool(Bool)
    case null

    var bytes: [UInt8] {
        var out: [UInt8] = []
        write(into: &out)
        return out
    }

    private func write(into out: inout [UInt8]) {
        switch self {
        case .object(let members): Self.write(members, into: &out)
        case .array(let elements):
            out.append(UInt8(ascii: "["))
            for (position, element) in elements.enumerated() {
                if position > 0 { out.append(UInt8(ascii: ",")) }
                element.write(into: &out)
            }
            out.append(UInt8(ascii: "]"))
        case .text(let text): JSONString.encode(text, into: &out)
        // There is no infinity in JSON.
        case .number(let number): out += number.isFinite ? Array("\(number)".utf8) : Array("null".utf8)
        case .integer(let number): out += String(number).utf8
        case .bool(let isTrue): out += (isTrue ? "true" : "false").utf8
        case .null: out += "null".utf8
        }
    }

    private static func write(_ members: [(String, JSONValue)], into out: inout [UInt8]) {
        out.append(UInt8(ascii: "{"))
        for (position, (key, value)) in members.enumerated() {
            if position > 0 { out.append(UInt8(ascii: ",")) }
            JSONString.encode(key, into: &out)
            out.append(UInt8(ascii: ":"))
            value.write(into: &out)
        }
        out.append(UInt8(ascii: "}"))
    }

    /// To a few digits: what is drawn needs no more.
    static func rounded(_ number: Double?) -> JSONValue {
        guard let number, number.isFinite else { return .null }
        let rounded = (number * 1000).rounded() / 1000
        return rounded == rounded.rounded() && abs(rounded) < 1e15 ? .integer(Int(rounded)) : .number(rounded)
    }

    static func optional(_ text: String?) -> JSONValue { text.map { .text($0) } ?? .null }
}

extension JSONValue: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral {
    init(dictionaryLiteral elements: (String, JSONValue)...) { self = .object(elements) }
    init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
}
