/// Base 64 with the URL-safe alphabet and no padding (RFC 4648, section 5), as JWTs use it.
package enum Base64URL {
    /// Nil where `text` is not exactly such an encoding.
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
                out += [UInt8(bits >> 16 & 255), UInt8(bits >> 8 & 255), UInt8(bits & 255)]
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
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var out: [UInt8] = []
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
