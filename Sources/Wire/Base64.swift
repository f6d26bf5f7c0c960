/// Base64 with padding (RFC 4648, section 4), used for bytes in JSON and in event streams.
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    package static func append(_ bytes: some Collection<UInt8>, to out: inout [UInt8]) {
        out.reserveCapacity(out.count + (bytes.count + 2) / 3 * 4)
        var bits: UInt32 = 0
        var pending = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            pending += 1
            guard pending == 3 else { continue }
            for shift: UInt32 in [18, 12, 6, 0] { out.append(alphabet[Int(bits >> shift & 63)]) }
            bits = 0
            pending = 0
        }
        guard pending > 0 else { return }
        bits <<= pending == 1 ? 16 : 8
        out.append(alphabet[Int(bits >> 18 & 63)])
        out.append(alphabet[Int(bits >> 12 & 63)])
        out.append(pending == 2 ? alphabet[Int(bits >> 6 & 63)] : UInt8(ascii: "="))
        out.append(UInt8(ascii: "="))
    }

    /// Nil unless `text` is exactly such an encoding; each sequence of bytes has one.
    package static func decode(_ text: some BidirectionalCollection<UInt8>) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        let padding = text.suffix(2).count { $0 == UInt8(ascii: "=") }
        let digits = text.dropLast(padding)
        var out: [UInt8] = []
        out.reserveCapacity(text.count / 4 * 3)
        var bits: UInt32 = 0
        var count = 0
        for byte in digits {
            guard let value = value(byte) else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 1
            guard count % 4 == 0 else { continue }
            out.append(UInt8(bits >> 16 & 255))
            out.append(UInt8(bits >> 8 & 255))
            out.append(UInt8(bits & 255))
            bits = 0
        }
        switch count % 4 {
        case 0 where padding == 0: return out
        case 2 where padding == 2 && bits & 15 == 0: return out + [UInt8(bits >> 4)]
        case 3 where padding == 1 && bits & 3 == 0: return out + [UInt8(bits >> 10), UInt8(bits >> 2 & 255)]
        default: return nil
        }
    }

    private static func value(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
