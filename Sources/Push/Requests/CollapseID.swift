import Signatures

/// `apns-collapse-id`: at most 64 bytes (Apple, "Sending notification requests to APNs").
package enum CollapseID {
    static let limit = 64

    /// `text` itself where it fits and can stand in a header, otherwise its SHA-256 in hexadecimal: 64 characters, the
    /// same for the same text.
    package static func fitting(_ text: String) -> String {
        let bytes = Array(text.utf8)
        if (1...limit).contains(bytes.count), bytes.allSatisfy({ (0x21...0x7E).contains($0) }) { return text }
        let digits = Array("0123456789abcdef".utf8)
        let hex = HashFunction.sha256.hash(bytes).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return String(decoding: hex, as: UTF8.self)
    }
}
