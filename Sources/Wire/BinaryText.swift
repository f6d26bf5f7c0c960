/// Base64 with the URL-safe alphabet and no padding (RFC 4648, section 5), used by JWTs and cursors.
package enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// Nil unless `text` is exactly such an encoding. Each sequence of bytes has one, since bits after the last byte
    /// must be zero.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        var out: [UInt8] = []
        out.reserveCapacity(text.count * 3 / 4)
        var bits: UInt32 = 0
        var count = 0
        for byte in text {
            guard let value = value(byte) else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 1
            if count % 4 == 0 {
                out.append(UInt8(bits >> 16 & 255))
                out.append(UInt8(bits >> 8 & 255))
                out.append(UInt8(bits & 255))
                bits = 0
            }
        }
        switch count % 4 {
        case 0: return out
        case 2 where bits & 15 == 0: return out + [UInt8(bits >> 4)]
        case 3 where bits & 3 == 0: return out + [UInt8(bits >> 10), UInt8(bits >> 2 & 255)]
        default: return nil
        }
    }

    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.underestimatedCount * 4 / 3 + 2)
        var bits: UInt32 = 0
        var pending = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            pending += 8
            while pending >= 6 {
                pending -= 6
                out.append(alphabet[Int(bits >> UInt32(pending) & 63)])
            }
        }
        if pending > 0 { out.append(alphabet[Int(bits << UInt32(6 - pending) & 63)]) }
        return String(decoding: out, as: UTF8.self)
    }

    private static func value(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0") + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}

/// Bytes and numbers as hexadecimal digits. Output uses lower-case digits.
package enum Hexadecimal {
    /// The value of a digit in either case.
    @inlinable
    package static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    /// The digit of a value from 0 to 15.
    @inlinable
    package static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    /// Returns two digits for each byte.
    package static func text(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: bytes.flatMap { [digit($0 >> 4), digit($0 & 15)] }, as: UTF8.self)
    }

    /// Returns the lowest `width` digits of a number.
    package static func text(_ number: UInt64, width: Int) -> String {
        var bytes: [UInt8] = []
        append(number, width: width, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends the lowest `width` digits of a number.
    @inlinable
    package static func append(_ number: UInt64, width: Int, to bytes: inout [UInt8]) {
        for place in (0..<width).reversed() {
            bytes.append(digit(UInt8(truncatingIfNeeded: number >> UInt64(4 * place) & 15)))
        }
    }

    /// Parses `width` lower-case digits from `start` on; nil if there is anything else.
    @inlinable @inline(__always)
    package static func parseNumber(_ bytes: UnsafeRawBufferPointer, _ start: Int, width: Int) -> UInt64? {
        var value: UInt64 = 0
        for at in start..<(start + width) {
            let byte = bytes[at]
            let digit = byte &- 48 < 10 ? byte &- 48 : byte &- 87
            guard digit < 16, byte < 58 || byte > 96 else { return nil }
            value = value << 4 | UInt64(digit)
        }
        return value
    }

    /// Parses Postgres' hex format of bytea (documentation, section 8.4.1): `\x00ff`.
    @inlinable
    package static func parseBytea(_ text: some RandomAccessCollection<UInt8>) -> [UInt8]? {
        guard text.starts(with: "\\x".utf8), text.count % 2 == 0 else { return nil }
        var out: [UInt8] = []
        out.reserveCapacity(text.count / 2 - 1)
        var digits = text.dropFirst(2).makeIterator()
        while let first = digits.next(), let second = digits.next() {
            guard let high = value(first), let low = value(second) else { return nil }
            out.append(high << 4 | low)
        }
        return out
    }
}

/// The spellings of a UUID (RFC 9562, section 4).
package enum UUIDText {
    /// Parses 32 hexadecimal digits in either case, with or without braces, with or without a hyphen after any group of
    /// four: exactly what Postgres accepts.
    package static func parse(_ text: [UInt8]) -> UInt128? {
        var digits = text[...]
        if digits.first == UInt8(ascii: "{") {
            guard digits.last == UInt8(ascii: "}") else { return nil }
            digits = digits.dropFirst().dropLast()
        }
        var value: UInt128 = 0
        var count = 0
        var mayBeHyphen = false
        for byte in digits {
            if byte == UInt8(ascii: "-"), mayBeHyphen {
                mayBeHyphen = false
                continue
            }
            guard count < 32, let digit = Hexadecimal.value(byte) else { return nil }
            value = value << 4 | UInt128(digit)
            count += 1
            mayBeHyphen = count % 4 == 0 && count < 32
        }
        return count == 32 ? value : nil
    }

    /// Returns the digits as 8-4-4-4-12 in lower case.
    package static func formatUUID(_ value: UInt128) -> String {
        String(unsafeUninitializedCapacity: 36) { out in
            var at = 0
            for place in 0..<32 {
                if place == 8 || place == 12 || place == 16 || place == 20 {
                    out[at] = UInt8(ascii: "-")
                    at += 1
                }
                out[at] = Hexadecimal.digit(UInt8(truncatingIfNeeded: value >> UInt128(4 * (31 - place))) & 15)
                at += 1
            }
            return at
        }
    }

    /// Returns a UUID of a version in RFC 9562's variant; its other bits are the given ones.
    package static func formatUUID(_ bits: UInt128, version: UInt8) -> String {
        let fixed: UInt128 = 0xF << 76 | 0b11 << 62
        return formatUUID(bits & ~fixed | UInt128(version) << 76 | 0b10 << 62)
    }
}
