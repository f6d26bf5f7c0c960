package import Wire

/// Reads the top-level keys of a record as `row_to_json` writes it, without spaces outside values.
package enum RecordKeys {
    /// The key as JSON spells it between the quotes.
    package static func encodeKey(_ name: Name) -> [UInt8] {
        var out: [UInt8] = []
        for byte in name.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
            case 0x08: out += Array("\\b".utf8)
            case 0x0C: out += Array("\\f".utf8)
            case 0x0A: out += Array("\\n".utf8)
            case 0x0D: out += Array("\\r".utf8)
            case 0x09: out += Array("\\t".utf8)
            case 0..<0x20:
                let digits = String(byte, radix: 16)
                out += Array(("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8)
            default: out.append(byte)
            }
        }
        return out
    }

    /// True if the record has exactly these keys in this order.
    package static func matchesKeys(_ record: UnsafeBufferPointer<UInt8>, _ keys: [[UInt8]]) -> Bool {
        var expected = 0
        let complete = forEachKey(of: record) { range in
            guard expected < keys.count, keys[expected].elementsEqual(record[range]) else { return false }
            expected += 1
            return true
        }
        return complete && expected == keys.count
    }

    package static func allKeys(of record: UnsafeBufferPointer<UInt8>) -> Set<[UInt8]> {
        var keys = Set<[UInt8]>()
        _ = forEachKey(of: record) { range in
            keys.insert(Array(record[range]))
            return true
        }
        return keys
    }

    private static func forEachKey(of record: UnsafeBufferPointer<UInt8>, _ body: (Range<Int>) -> Bool) -> Bool {
        var index = 1
        while index < record.count, record[index] == quote {
            let start = index + 1
            index = endOfString(record, from: index)
            guard body(start..<(index - 1)) else { return false }
            index = endOfValue(record, from: index + 1)
            guard index < record.count, record[index] == UInt8(ascii: ",") else { break }
            index += 1
        }
        return true
    }

    private static let quote = UInt8(ascii: "\"")

    /// The index after the closing quote.
    private static func endOfString(_ text: UnsafeBufferPointer<UInt8>, from opening: Int) -> Int {
        var index = opening + 1
        while index < text.count, text[index] != quote { index += text[index] == UInt8(ascii: "\\") ? 2 : 1 }
        return index + 1
    }

    /// The index of the comma or brace that ends the value.
    private static func endOfValue(_ text: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        var depth = 0
        var index = start
        while index < text.count {
            switch text[index] {
            case quote:
                index = endOfString(text, from: index)
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return index }
                depth -= 1
            case UInt8(ascii: ","):
                if depth == 0 { return index }
            default: break
            }
            index += 1
        }
        return index
    }
}
