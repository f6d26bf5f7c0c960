import CCrypto

/// The curve P-256 in terms of raw numbers.
package enum P256 {
    /// The bytes of a private key, and of a shared secret.
    package static let scalarLength = Int(ROOST_P256_SCALAR)
    /// The bytes of a public key: an uncompressed point (SEC 1, section 2.3.3).
    package static let pointLength = Int(ROOST_P256_POINT)

    package static func isPoint(_ bytes: [UInt8]) -> Bool { bytes.count == pointLength && roost_p256_is_point(bytes) }

    /// Agrees on a secret with the owner of a public key (ECDH; NIST SP 800-56A, section 5.7.1.2).
    ///
    /// - Parameters:
    ///   - scalar: our private key, 32 bytes, the most significant first.
    ///   - point: the other side's public key.
    /// - Returns: our public key and the secret; nil if a number is not a key.
    package static func exchange(scalar: [UInt8], with point: [UInt8]) -> (point: [UInt8], secret: [UInt8])? {
        guard scalar.count == scalarLength, point.count == pointLength else { return nil }
        var isKey = false
        var secret = [UInt8](repeating: 0, count: scalarLength)
        let own = [UInt8](unsafeUninitializedCapacity: pointLength) { buffer, count in
            isKey = roost_p256_exchange(scalar, point, buffer.baseAddress, &secret)
            count = isKey ? pointLength : 0
        }
        return isKey ? (own, secret) : nil
    }
}

extension P256PrivateKey {
    /// - Parameter scalar: 32 bytes, the most significant first. Nil for a number that is not a private key.
    package convenience init?(scalar: [UInt8]) {
        guard scalar.count == P256.scalarLength else { return nil }
        self.init(roost_key_p256_private(scalar))
    }

    /// The public key: 65 bytes. Nil if memory is short.
    package var point: [UInt8]? {
        let bytes = [UInt8](unsafeUninitializedCapacity: P256.pointLength) { buffer, count in
            count = roost_key_p256_point(key, buffer.baseAddress) ? P256.pointLength : 0
        }
        return bytes.isEmpty ? nil : bytes
    }
}

/// Keys derived from secrets by HKDF with SHA-256 (RFC 5869).
package struct DerivedKeys {
    private let key: MessageAuthenticationKey

    /// Extracts (section 2.2).
    package init(from secret: [UInt8], salt: [UInt8]) {
        key = MessageAuthenticationKey(MessageAuthenticationKey(salt, .sha256).code(for: secret), .sha256)
    }

    /// Expands to at most one block of the hash (section 2.3): 32 bytes.
    package func key(for purpose: [UInt8], length: Int) -> [UInt8] {
        precondition(length <= 32)
        return Array(key.code(for: purpose + [1]).prefix(length))
    }
}

/// AES with keys of 128 bits in Galois/Counter Mode (NIST SP 800-38D), without additional data.
package enum AES128GCM {
    package static let keyLength = Int(ROOST_GCM_KEY)
    package static let nonceLength = Int(ROOST_GCM_NONCE)
    package static let tagLength = Int(ROOST_GCM_TAG)

    /// Returns the encrypted text and its tag; nil if memory is short.
    package static func seal(_ text: [UInt8], key: [UInt8], nonce: [UInt8]) -> [UInt8]? {
        precondition(key.count == keyLength && nonce.count == nonceLength)
        let sealed = [UInt8](unsafeUninitializedCapacity: text.count + tagLength) { buffer, count in
            guard let out = buffer.baseAddress else { return }
            count = roost_gcm_seal(key, nonce, text, text.count, out)
        }
        return sealed.isEmpty ? nil : sealed
    }
}
