/// The escapes of JSON strings (RFC 8259, section 7).
package enum JSONString {
    /// Returns the text of a checked string, given without its quotes. A lone surrogate becomes U+FFFD.
    package static func decode(_ raw: ArraySlice<UInt8>) -> String {
        guard raw.contains(UInt8(ascii: "\\")) else { return String(decoding: raw, as: UTF8.self) }
        var units: [UInt16] = []
        var text = ""
        var plain: [UInt8] = []
        var at = raw.startIndex
        func flush() {
            if !units.isEmpty {
                text += String(decoding: units, as: UTF16.self)
                units.removeAll()
            }
            if !plain.isEmpty {
                text += String(decoding: plain, as: UTF8.self)
                plain.removeAll()
            }
        }
        while at < raw.endIndex {
            guard raw[at] == UInt8(ascii: "\\"), at + 1 < raw.endIndex else {
                if !units.isEmpty { flush() }
                plain.append(raw[at])
                at += 1
                continue
            }
            let escape = raw[at + 1]
            if escape == UInt8(ascii: "u"), at + 6 <= raw.endIndex {
                if !plain.isEmpty { flush() }
                units.append(raw[(at + 2)..<(at + 6)].reduce(0) { $0 << 4 | UInt16(Hexadecimal.value($1) ?? 0) })
                at += 6
            } else {
                if !units.isEmpty { flush() }
                plain.append(unescaped(escape))
                at += 2
            }
        }
        flush()
        return text
    }

    private static func unescaped(_ escape: UInt8) -> UInt8 {
        switch escape {
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: escape
        }
    }

    /// Appends `text` with its quotes.
    ///
    /// Not generic: other modules would call it unspecialized, a dozen calls for each byte.
    package static func encode(_ text: String, into out: inout [UInt8]) {
        var text = text
        text.withUTF8 { encode($0, into: &out) }
    }

    package static func encode(_ text: Substring, into out: inout [UInt8]) {
        var text = text
        text.withUTF8 { encode($0, into: &out) }
    }

    private static func encode(_ bytes: UnsafeBufferPointer<UInt8>, into out: inout [UInt8]) {
        out.append(UInt8(ascii: "\""))
        // Text without escapes, nearly always the whole string, is copied at once.
        var plain = 0
        for at in bytes.indices {
            let byte = bytes[at]
            guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
            out.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[plain..<at]))
            escape(byte, into: &out)
            plain = at + 1
        }
        out.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[plain...]))
        out.append(UInt8(ascii: "\""))
    }

    private static func escape(_ byte: UInt8, into out: inout [UInt8]) {
        out.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x0A: out.append(UInt8(ascii: "n"))
        case 0x0D: out.append(UInt8(ascii: "r"))
        case 0x09: out.append(UInt8(ascii: "t"))
        case 0..<0x20:
            out.append(contentsOf: "u00".utf8)
            out.append(Hexadecimal.digit(byte >> 4))
            out.append(Hexadecimal.digit(byte & 15))
        default: out.append(byte)
        }
    }

    /// Returns the number of bytes that `encode` makes of a text, including the quotes.
    package static func encodedCount(_ text: String) -> Int {
        text.utf8.reduce(2) { count, byte in
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x09, 0x0A, 0x0D: count + 2
            case 0..<0x20: count + 6
            default: count + 1
            }
        }
    }

    /// Returns `text` with its quotes as a String, for text that is composed of Strings.
    package static func quoted(_ text: String) -> String { String(decoding: encode(text), as: UTF8.self) }

    package static func encode(_ text: String) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(text.utf8.count + 2)
        encode(text, into: &out)
        return out
    }
}
