/// Any string as a text that Postgres takes: it has no U+0000, and JSON strings do (Migration007Presence.sql).
enum StoredText {
    private static let backslash = UInt8(ascii: "\\")

    static func encode(_ string: String) -> [UInt8] {
        let bytes = Array(string.utf8)
        guard bytes.contains(where: { $0 == 0 || $0 == backslash }) else { return bytes }
        return bytes.flatMap { byte -> [UInt8] in
            switch byte {
            case 0: [backslash, UInt8(ascii: "0")]
            case backslash: [backslash, backslash]
            default: [byte]
            }
        }
    }

    static func decode(_ stored: String) -> String {
        guard stored.utf8.contains(backslash) else { return stored }
        var bytes: [UInt8] = []
        var isEscaped = false
        for byte in stored.utf8 {
            if isEscaped {
                bytes.append(byte == UInt8(ascii: "0") ? 0 : byte)
                isEscaped = false
            } else if byte == backslash {
                isEscaped = true
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
