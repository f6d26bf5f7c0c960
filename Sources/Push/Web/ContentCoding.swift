import Signatures

/// The content coding `aes128gcm` (RFC 8188): a header and records, each encrypted with AES-128-GCM.
enum ContentCoding {
    static let saltLength = 16
    /// Bytes of the header before the key id: salt, record size, length of the key id (section 2.1).
    static let headerLength = saltLength + 4 + 1

    /// The content of one record.
    struct Record {
        var bytes: [UInt8]
        /// The number of zeros after the delimiter.
        var padding = 0
    }

    /// Encodes records that fit `recordSize`, each with its delimiter, its padding and its tag.
    ///
    /// - Parameters:
    ///   - secret: the input keying material (section 2.2).
    ///   - salt: 16 random bytes, unique among the messages of this secret.
    /// - Returns: nil if memory is short.
    static func encode(
        _ records: [Record], secret: [UInt8], salt: [UInt8], recordSize: UInt32, keyID: [UInt8]
    ) -> [UInt8]? {
        precondition(salt.count == saltLength && keyID.count <= 255)
        let keys = DerivedKeys(from: secret, salt: salt)
        let key = keys.key(for: contentKey, length: AES128GCM.keyLength)
        let base = keys.key(for: nonce, length: AES128GCM.nonceLength)
        var out: [UInt8] = []
        out.reserveCapacity(headerLength + keyID.count + records.reduce(0) { $0 + $1.bytes.count + $1.padding + 17 })
        out += salt
        for shift in [24, 16, 8, 0] as [UInt32] { out.append(UInt8(truncatingIfNeeded: recordSize >> shift)) }
        out.append(UInt8(keyID.count))
        out += keyID
        for (index, record) in records.enumerated() {
            // Section 2: the last record has a different delimiter, so that truncation of a message is noticed.
            let delimiter: UInt8 = index == records.count - 1 ? 2 : 1
            let text = record.bytes + [delimiter] + [UInt8](repeating: 0, count: record.padding)
            precondition(text.count + AES128GCM.tagLength <= Int(recordSize))
            guard let sealed = AES128GCM.seal(text, key: key, nonce: nonce(base, index)) else { return nil }
            out += sealed
        }
        return out
    }

    // Sections 2.2 and 2.3, each with its trailing zero.
    private static let contentKey = Array("Content-Encoding: aes128gcm\0".utf8)
    private static let nonce = Array("Content-Encoding: nonce\0".utf8)

    /// The nonce of a record: the sequence number is added to the last bytes without carry (section 2.3).
    private static func nonce(_ base: [UInt8], _ index: Int) -> [UInt8] {
        var nonce = base
        for place in 0..<8 { nonce[nonce.count - 1 - place] ^= UInt8(truncatingIfNeeded: index >> (8 * place)) }
        return nonce
    }
}
