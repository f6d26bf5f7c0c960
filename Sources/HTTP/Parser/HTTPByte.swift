/// Classes of bytes, as RFC 9110 and RFC 3986 name them.
enum HTTPByte {
    static let tab = UInt8(ascii: "\t")
    static let lineFeed = UInt8(ascii: "\n")
    static let carriageReturn = UInt8(ascii: "\r")
    static let space = UInt8(ascii: " ")

    /// `tchar` (RFC 9110, section 5.6.2): letters, digits and ``!#$%&'*+-.^_`|~``.
    @inline(__always)
    static func isToken(_ byte: UInt8) -> Bool {
        let set: UInt64 = byte < 64 ? 0x03FF_6CFA_0000_0000 : byte < 128 ? 0x57FF_FFFF_C7FF_FFFE : 0
        return set >> UInt64(byte & 63) & 1 == 1
    }

    /// Characters allowed around a value: `OWS` (RFC 9110, section 5.6.3).
    @inline(__always)
    static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == tab }

    /// ASCII that is neither a space nor a control character.
    @inline(__always)
    static func isVisible(_ byte: UInt8) -> Bool { byte > space && byte < 0x7F }

    /// Control characters other than the tab; no line may contain them.
    @inline(__always)
    static func isControl(_ byte: UInt8) -> Bool { byte < space && byte != tab || byte == 0x7F }

    @inline(__always)
    static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    @inline(__always)
    static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- UInt8(ascii: "a") < 26 }

    @inline(__always)
    static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
    }

    /// The value of a hexadecimal digit.
    static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension Span<UInt8> {
    /// The text of some of the bytes, which must be valid UTF-8.
    func text(_ range: Range<Int>) -> String {
        extracting(range).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    /// Like `text`, in lower case, for ASCII.
    func lowercasedText(_ range: Range<Int>) -> String {
        extracting(range).withUnsafeBufferPointer { bytes in
            String(unsafeUninitializedCapacity: bytes.count) { out in
                for i in 0..<bytes.count { out[i] = HTTPByte.lowercased(bytes[i]) }
                return bytes.count
            }
        }
    }

    /// The token in an `authorization` header's value, which must be valid UTF-8: not empty, after `Bearer` and one
    /// space.
    func bearer(in value: Range<Int>) -> String? {
        let scheme: StaticString = "bearer "
        let token = value.dropFirst(scheme.utf8CodeUnitCount)
        guard !token.isEmpty, isEqual(value.lowerBound..<token.lowerBound, ignoringCase: scheme) else { return nil }
        return text(token)
    }

    /// Whether some of the bytes equal this ASCII text, ignoring case.
    /// - Parameter text: in lower case.
    func isEqual(_ range: Range<Int>, ignoringCase text: String) -> Bool {
        let text = text.utf8
        guard range.count == text.count else { return false }
        var at = range.lowerBound
        for byte in text {
            guard HTTPByte.lowercased(self[at]) == byte else { return false }
            at += 1
        }
        return true
    }

    /// Whether some of the bytes equal this ASCII text, ignoring case.
    func isEqual(_ range: Range<Int>, ignoringCase text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        return text.withUTF8Buffer { text in
            for i in 0..<text.count
            where HTTPByte.lowercased(self[range.lowerBound + i]) != HTTPByte.lowercased(text[i]) {
                return false
            }
            return true
        }
    }
}
