/// Base 64 with the URL-safe alphabet and no padding (RFC 4648, section 5), as JWTs use it.
enum Base64URL {
    static func encode(_ bytes: some Sequence<UInt8>) -> String {
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
}
