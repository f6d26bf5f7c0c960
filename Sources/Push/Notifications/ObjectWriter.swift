import Wire

/// Writes one JSON object, member by member.
struct ObjectWriter {
    private var out: [UInt8] = [UInt8(ascii: "{")]

    var bytes: [UInt8] { out + [UInt8(ascii: "}")] }
    var isEmpty: Bool { out.count == 1 }

    mutating func add(_ key: String, json: some Sequence<UInt8>) {
        if !isEmpty { out.append(UInt8(ascii: ",")) }
        JSONString.encode(key, into: &out)
        out.append(UInt8(ascii: ":"))
        out += json
    }

    mutating func add(_ key: String, _ text: String) { add(key, json: JSONString.encode(text)) }
    mutating func add(_ key: String, _ number: some BinaryInteger) { add(key, json: String(number).utf8) }

    mutating func add(_ key: String, _ texts: [String]) {
        let list = texts.map { JSONString.encode($0) }.joined(separator: [UInt8(ascii: ",")])
        add(key, json: [UInt8(ascii: "[")] + list + [UInt8(ascii: "]")])
    }
}
