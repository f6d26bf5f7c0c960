import Wire

/// Writes one JSON object, member by member, in the order in which they are added.
package struct ObjectWriter {
    private var out: [UInt8] = [UInt8(ascii: "{")]

    package init() {}

    package var bytes: [UInt8] { out + [UInt8(ascii: "}")] }
    var isEmpty: Bool { out.count == 1 }

    /// - Parameter json: the member's value, as JSON.
    package mutating func add(_ key: String, json: some Sequence<UInt8>) {
        if !isEmpty { out.append(UInt8(ascii: ",")) }
        JSONString.encode(key, into: &out)
        out.append(UInt8(ascii: ":"))
        out += json
    }

    package mutating func add(_ key: String, _ text: String) { add(key, json: JSONString.encode(text)) }
    package mutating func add(_ key: String, _ number: some BinaryInteger) { add(key, json: String(number).utf8) }

    mutating func add(_ key: String, _ texts: [String]) {
        add(key, json: Self.array(texts.map { JSONString.encode($0) }))
    }

    /// A JSON array.
    ///
    /// - Parameter elements: each as JSON.
    package static func array(_ elements: [[UInt8]]) -> [UInt8] {
        [UInt8(ascii: "[")] + elements.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "]")]
    }
}
