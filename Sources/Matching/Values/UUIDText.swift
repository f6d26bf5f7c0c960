/// The spellings of a uuid.
enum UUIDText {
    /// Reads 32 hexadecimal digits in either case, with or without braces, with or without a hyphen behind any group of
    /// four: exactly what Postgres accepts.
    static func parse(_ text: [UInt8]) -> UInt128? {
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
            guard count < 32, let digit = hexValue(byte) else { return nil }
            value = value << 4 | UInt128(digit)
            count += 1
            mayBeHyphen = count % 4 == 0 && count < 32
        }
        return count == 32 ? value : nil
    }

    /// As Postgres writes it: 8-4-4-4-12 in lower case.
    static func write(_ value: UInt128) -> String {
        var out: [UInt8] = []
        for place in 0..<32 {
            if [8, 12, 16, 20].contains(place) { out.append(UInt8(ascii: "-")) }
            let digit = UInt8(truncatingIfNeeded: value >> UInt128(4 * (31 - place))) & 15
            out.append(digit < 10 ? digit + UInt8(ascii: "0") : digit - 10 + UInt8(ascii: "a"))
        }
        return String(decoding: out, as: UTF8.self)
    }

    private static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }
}
