/// One JSON value (RFC 8259), kept as the bytes it was written in.
///
/// Values passing through the hub are spliced, never re-encoded: a client gets back the exact text of its subscription,
/// and a payload keeps its number formats, key order and duplicate keys. The bytes are checked once, on arrival
/// (`init(parsing:)`); later look-ups walk over bytes known to be well formed.
package struct JSON: Sendable {
    /// The value's text without surrounding white space.
    package let bytes: ArraySlice<UInt8>

    /// A syntax error.
    package struct SyntaxError: Error, Equatable {
        /// The offset of the offending byte.
        package let offset: Int
    }

    /// Checks that `bytes` are exactly one JSON value in valid UTF-8, nested no deeper than `JSONScanner.depthLimit`.
    package init(parsing bytes: ArraySlice<UInt8>) throws(SyntaxError) {
        let range = try JSONScanner.wholeValue(in: bytes.span)
        self.bytes = bytes[(bytes.startIndex + range.lowerBound)..<(bytes.startIndex + range.upperBound)]
    }

    package init(parsing bytes: [UInt8]) throws(SyntaxError) {
        try self.init(parsing: bytes[...])
    }

    /// Wraps bytes that were checked as part of a larger value, or that the hub wrote itself.
    package init(trusted bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
    }

    package static let null = JSON(trusted: Array("null".utf8)[...])
    package static let emptyObject = JSON(trusted: Array("{}".utf8)[...])

    package enum Kind: Sendable {
        case object, array, string, number, bool, null
    }

    package var kind: Kind {
        switch bytes.first {
        case UInt8(ascii: "{"): .object
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "\""): .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"): .bool
        case UInt8(ascii: "n"): .null
        default: .number
        }
    }

    package var isNull: Bool { kind == .null }

    /// The text of a string, escapes resolved; nil for other kinds.
    package var string: String? {
        guard kind == .string else { return nil }
        return JSONString.decode(bytes.dropFirst().dropLast())
    }

    package var bool: Bool? {
        kind == .bool ? bytes.first == UInt8(ascii: "t") : nil
    }

    /// The value of a number that is written as an integer and fits into 64 bits.
    package var int: Int? {
        kind == .number ? Int(String(decoding: bytes, as: UTF8.self)) : nil
    }

    package var double: Double? {
        kind == .number ? Double(String(decoding: bytes, as: UTF8.self)) : nil
    }

    /// The value of an object's member; the last one if a key is repeated, as in most parsers.
    package subscript(key: String) -> JSON? {
        var found: JSON?
        forEachMember { member in
            if member.isNamed(key) { found = member.value }
        }
        return found
    }

    /// The elements of an array; empty for other kinds.
    package var elements: [JSON] { elements(upTo: .max) }

    /// The first elements of an array, at most `limit` of them.
    package func elements(upTo limit: Int) -> [JSON] {
        var all: [JSON] = []
        guard kind == .array else { return all }
        var at = 1
        let span = bytes.span
        while all.count < limit, let range = JSONScanner.nextElement(in: span, from: &at) {
            all.append(slice(range))
        }
        return all
    }

    /// One member of an object.
    package struct Member {
        /// The key between its quotes, as written.
        package let rawKey: ArraySlice<UInt8>
        package let value: JSON

        package var key: String { JSONString.decode(rawKey) }

        package func isNamed(_ name: String) -> Bool {
            // An escape in a key is legal but rare: only then is the key decoded. Bytes are compared, because Swift
            // equates strings that look alike.
            name.hasSameBytes(as: rawKey)
                || (rawKey.contains(UInt8(ascii: "\\")) && key.hasSameBytes(as: name))
        }
    }

    /// Visits an object's members in the order written; does nothing for other kinds.
    package func forEachMember(_ body: (Member) -> Void) {
        guard kind == .object else { return }
        var at = 1
        let span = bytes.span
        while let (key, value) = JSONScanner.nextMember(in: span, from: &at) {
            body(Member(rawKey: slice(key).bytes, value: slice(value)))
        }
    }

    private func slice(_ range: Range<Int>) -> JSON {
        JSON(trusted: bytes[(bytes.startIndex + range.lowerBound)..<(bytes.startIndex + range.upperBound)])
    }
}

extension JSON: CustomStringConvertible {
    package var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension JSON {
    /// Whether two values mean the same to a parser: the order of an object's members and white space are ignored, and
    /// the last of repeated keys counts. Numbers are compared as written.
    package func isEqual(to other: JSON) -> Bool { isEqual(to: other, depth: 0) }

    /// - Parameter depth: the depth of the value within the compared ones. Unchecked values may be nested more deeply
    ///   than the stack allows.
    private func isEqual(to other: JSON, depth: Int) -> Bool {
        if bytes.elementsEqual(other.bytes) { return true }
        guard kind == other.kind, depth <= JSONScanner.depthLimit else { return false }
        switch kind {
        case .string: return string?.utf8.elementsEqual(other.string?.utf8 ?? "".utf8) ?? false
        case .array:
            let (mine, others) = (elements, other.elements)
            return mine.count == others.count && zip(mine, others).allSatisfy { $0.isEqual(to: $1, depth: depth + 1) }
        case .object:
            let (mine, others) = (members, other.members)
            return mine.count == others.count
                && mine.allSatisfy { key, value in others[key].map { value.isEqual(to: $0, depth: depth + 1) } ?? false
                }
        case .number, .bool, .null: return false
        }
    }

    /// The members of an object by the bytes of their keys.
    private var members: [[UInt8]: JSON] {
        var all: [[UInt8]: JSON] = [:]
        forEachMember { all[Array($0.key.utf8)] = $0.value }
        return all
    }
}
