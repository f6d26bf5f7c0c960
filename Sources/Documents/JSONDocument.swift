import CJansson

/// A JSON value held in memory as a whole, parsed or built by jansson: for small, rare documents. On the path of a
/// frame, text is scanned and spliced instead (`Wire.JSON`).
///
/// Immutable, and so usable from any thread.
package struct JSONDocument: Sendable {
    private let node: Node

    /// Owns one reference to a value.
    ///
    /// Sendable: values in a document never change, and jansson counts references atomically.
    private final class Node: @unchecked Sendable {
        let value: UnsafeMutablePointer<json_t>

        /// Takes ownership of a reference.
        init(_ value: UnsafeMutablePointer<json_t>) { self.value = value }

        deinit { json_decref(value) }
    }

    private init(_ node: Node) { self.node = node }

    /// - Parameter borrowed: a value with another owner.
    private init(borrowed: UnsafeMutablePointer<json_t>) { node = Node(json_incref(borrowed)) }

    /// - Parameter made: a value to own; jansson returns null if there is no memory.
    private init(made: UnsafeMutablePointer<json_t>?) {
        guard let made else { fatalError("out of memory") }
        node = Node(made)
    }

    package enum Kind: Sendable {
        case object, array, string, integer, real, bool, null
    }

    package var kind: Kind {
        switch node.value.pointee.type {
        case JSON_OBJECT: .object
        case JSON_ARRAY: .array
        case JSON_STRING: .string
        case JSON_INTEGER: .integer
        case JSON_REAL: .real
        case JSON_TRUE, JSON_FALSE: .bool
        default: .null
        }
    }
}

// MARK: Parsing

extension JSONDocument {
    /// Limits of a document.
    package struct Limits: Sendable {
        package let bytes: Int
        /// The deepest nesting of arrays and objects.
        package let depth: Int

        package init(bytes: Int, depth: Int = 64) { (self.bytes, self.depth) = (bytes, depth) }
    }

    /// The reason why a text is not a JSON document.
    package struct Problem: Error, Equatable, CustomStringConvertible {
        /// Line (from 1) and column (in characters) of the last character that was read.
        package let line: Int
        package let column: Int
        /// The offset of the last byte that was read.
        package let offset: Int
        /// Part of a sentence. It may quote the text.
        package let reason: String

        package var description: String { "line \(line), column \(column): \(reason)" }
    }

    /// Parses exactly one value in UTF-8. For a repeated key the last value counts.
    ///
    /// Unlike `Wire.JSON`, it refuses what it cannot represent: a lone surrogate, an integer beyond 64 bits, a number
    /// beyond a `Double`, and a key with U+0000.
    package init(parsing bytes: [UInt8], limits: Limits) throws(Problem) {
        guard bytes.count <= limits.bytes else {
            throw Problem(line: 1, column: 1, offset: 0, reason: "it has more than \(limits.bytes) bytes")
        }
        if let (place, reason) = Self.findFault(in: bytes, deeperThan: limits.depth) {
            let before = bytes[..<place]
            let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
            throw Problem(
                line: before.count { $0 == UInt8(ascii: "\n") } + 1,
                column: before[lineStart...].count { $0 & 0xC0 != 0x80 } + 1, offset: place, reason: reason)
        }
        var error = json_error_t()
        let value = bytes.withUnsafeBytes { buffer in
            json_loadb(buffer.baseAddress, buffer.count, Int(JSON_DECODE_ANY | JSON_ALLOW_NUL), &error)
        }
        guard let value else {
            throw Problem(
                line: Int(error.line), column: Int(error.column), offset: max(0, Int(error.position) - 1),
                reason: withUnsafeBytes(of: error.text) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
        node = Node(value)
    }

    /// Finds faults that jansson would accept: it nests down to 2,048 levels, and takes a zero byte between values for
    /// the end of the text.
    private static func findFault(in bytes: [UInt8], deeperThan limit: Int) -> (place: Int, reason: String)? {
        var (depth, isText, isEscaped) = (0, false, false)
        for (at, byte) in bytes.enumerated() {
            if isText {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isText = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isText = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                if depth > limit { return (at, "it is nested more than \(limit) deep") }
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            case 0: return (at, "a zero byte is no part of JSON")
            default: break
            }
        }
        return nil
    }

    package var isNull: Bool { kind == .null }

    /// Nil for other kinds, like the following ones.
    package var string: String? {
        guard let text = json_string_value(node.value) else { return nil }
        let bytes = UnsafeRawBufferPointer(start: text, count: json_string_length(node.value))
        return String(decoding: bytes, as: UTF8.self)
    }

    package var int: Int? { kind == .integer ? Int(json_integer_value(node.value)) : nil }

    package var double: Double? { kind == .integer || kind == .real ? json_number_value(node.value) : nil }

    package var bool: Bool? { kind == .bool ? node.value.pointee.type == JSON_TRUE : nil }

    /// The value of an object's member.
    package subscript(key: String) -> JSONDocument? {
        key.withCString { json_object_getn(node.value, $0, key.utf8.count) }.map { JSONDocument(borrowed: $0) }
    }

    /// The elements of an array; empty for other kinds.
    package var elements: [JSONDocument] {
        (0..<json_array_size(node.value)).compactMap { json_array_get(node.value, $0) }.map {
            JSONDocument(borrowed: $0)
        }
    }

    /// The members of an object in written order; empty for other kinds.
    package var members: [(key: String, value: JSONDocument)] {
        var all: [(key: String, value: JSONDocument)] = []
        var place = json_object_iter(node.value)
        while let member = place {
            if let key = json_object_iter_key(member), let value = json_object_iter_value(member) {
                let bytes = UnsafeRawBufferPointer(start: key, count: json_object_iter_key_len(member))
                all.append((String(decoding: bytes, as: UTF8.self), JSONDocument(borrowed: value)))
            }
            place = json_object_iter_next(node.value, member)
        }
        return all
    }
}

// MARK: Building

extension JSONDocument {
    /// Members keep their order.
    package static func object(_ members: [(String, JSONDocument)]) -> JSONDocument {
        let object = JSONDocument(made: json_object())
        for (key, value) in members {
            key.withCString {
                _ = json_object_setn_new_nocheck(
                    object.node.value, $0, key.utf8.count, json_incref(value.node.value))
            }
        }
        return object
    }

    package static func array(_ elements: [JSONDocument]) -> JSONDocument {
        let array = JSONDocument(made: json_array())
        for element in elements { json_array_append_new(array.node.value, json_incref(element.node.value)) }
        return array
    }

    package static func text(_ text: String) -> JSONDocument {
        text.withCString { JSONDocument(made: json_stringn_nocheck($0, text.utf8.count)) }
    }

    package static func integer(_ number: some BinaryInteger) -> JSONDocument {
        JSONDocument(made: json_integer(json_int_t(number)))
    }

    /// Null if the number is not finite, as JSON has no such numbers.
    package static func real(_ number: Double) -> JSONDocument {
        number.isFinite ? JSONDocument(made: json_real(number)) : .null
    }

    /// A number rounded to three decimals, enough for charts; null if there is none.
    package static func rounded(_ number: Double?) -> JSONDocument {
        guard let number, number.isFinite else { return .null }
        let rounded = (number * 1000).rounded() / 1000
        return rounded == rounded.rounded() && abs(rounded) < 1e15 ? .integer(Int(rounded)) : .real(rounded)
    }

    package static func bool(_ flag: Bool) -> JSONDocument { JSONDocument(made: flag ? json_true() : json_false()) }

    package static var null: JSONDocument { JSONDocument(made: json_null()) }

    package static func optional(_ text: String?) -> JSONDocument { text.map { .text($0) } ?? .null }
}

extension JSONDocument: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral {
    package init(dictionaryLiteral elements: (String, JSONDocument)...) { self = .object(elements) }
    package init(arrayLiteral elements: JSONDocument...) { self = .array(elements) }
}

// MARK: Writing

extension JSONDocument {
    /// The document on one line without blanks. Reals have up to 15 digits, all of which any `Double` preserves.
    package var bytes: [UInt8] {
        var out: [UInt8] = []
        // JSON_REAL_PRECISION(15), a macro with an argument, does not import.
        let flags = Int(JSON_COMPACT | JSON_ENCODE_ANY) | 15 << 11
        withUnsafeMutablePointer(to: &out) { out in
            _ = json_dump_callback(
                node.value,
                { piece, count, out in
                    guard let piece, let out else { return -1 }
                    out.assumingMemoryBound(to: [UInt8].self).pointee
                        .append(contentsOf: UnsafeRawBufferPointer(start: piece, count: count))
                    return 0
                }, out, flags)
        }
        return out
    }

    package var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension JSONDocument: CustomStringConvertible {}
