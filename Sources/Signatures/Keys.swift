import CCrypto

/// A signature scheme of JWTs (RFC 7518, section 3.1; RFC 8037, section 3.1).
package enum SignatureScheme: Sendable {
    /// RSASSA-PKCS1-v1_5.
    case rsa(HashFunction)
    /// RSASSA-PSS with a salt as long as the hash.
    case rsaPSS(HashFunction)
    /// ECDSA. A signature is r and s side by side, each as long as the curve's coordinates, not DER.
    case ecdsa(HashFunction)
    /// EdDSA with the curve of the same name.
    case ed25519

    fileprivate var cValue: (scheme: roost_scheme, hash: roost_hash) {
        switch self {
        case .rsa(let hash): (ROOST_RSA_PKCS1, hash.cValue)
        case .rsaPSS(let hash): (ROOST_RSA_PSS, hash.cValue)
        case .ecdsa(let hash): (ROOST_ECDSA, hash.cValue)
        case .ed25519: (ROOST_ED25519, ROOST_SHA512)
        }
    }
}

/// The NIST curves used with ECDSA.
package enum EllipticCurve: Sendable {
    case p256, p384, p521

    fileprivate var cValue: roost_curve {
        switch self {
        case .p256: ROOST_P256
        case .p384: ROOST_P384
        case .p521: ROOST_P521
        }
    }
}

/// A public key, which verifies signatures. Every initializer returns nil for numbers that are not a key, and for a key that is too
/// weak to be trusted or too large to be checked on an event loop (bounds: CCrypto.h).
///
/// `@unchecked` because of the pointer: libcrypto's key is not written to after its creation, so that any thread may use it
/// (openssl-threads(7)); it is freed with the last reference.
package final class PublicKey: @unchecked Sendable {
    private let key: OpaquePointer

    private init?(_ key: OpaquePointer?) {
        guard let key else { return nil }
        self.key = key
    }

    deinit { roost_key_free(key) }

    /// Makes an RSA key. The numbers are unsigned, the most significant byte first.
    package convenience init?(modulus: [UInt8], exponent: [UInt8]) {
        self.init(roost_key_rsa(modulus, modulus.count, exponent, exponent.count))
    }

    /// Makes a key from a point of a curve. Coordinates have the curve's length, the most significant byte first.
    package convenience init?(_ curve: EllipticCurve, x: [UInt8], y: [UInt8]) {
        self.init(roost_key_ec(curve.cValue, x, x.count, y, y.count))
    }

    /// Makes a key from the 32 bytes of an Ed25519 key (RFC 8032, section 5.1.5).
    package convenience init?(ed25519 bytes: [UInt8]) {
        self.init(roost_key_ed25519(bytes, bytes.count))
    }

    /// Whether the owner of this key signed `bytes`. False for a scheme of another kind of key.
    package func verifies(_ signature: [UInt8], of bytes: [UInt8], _ scheme: SignatureScheme) -> Bool {
        let (scheme, hash) = scheme.cValue
        return roost_key_verify(key, scheme, hash, signature, signature.count, bytes, bytes.count)
    }
}

/// A private key of the curve P-256, which signs and agrees on secrets.
///
/// `@unchecked` because of the pointer, for the reason given at `PublicKey`.
package final class P256PrivateKey: @unchecked Sendable {
    let key: OpaquePointer

    init?(_ key: OpaquePointer?) {
        guard let key else { return nil }
        self.key = key
    }

    /// - Parameter pem: PKCS #8 (RFC 5958) or SEC 1 in PEM, without a passphrase. Nil for anything else.
    package convenience init?(pem: String) {
        var text = pem
        self.init(text.withUTF8 { roost_key_p256_pem($0.baseAddress, $0.count) })
    }

    deinit { roost_key_free(key) }

    /// Signs `bytes` by ECDSA with SHA-256 (ES256 of RFC 7518, section 3.4): 64 bytes. Returns nil if memory is short.
    package func signature(of bytes: [UInt8]) -> [UInt8]? {
        let signature = [UInt8](unsafeUninitializedCapacity: Int(ROOST_LONGEST_SIGNATURE)) { buffer, count in
            count = roost_key_sign(key, ROOST_ECDSA, ROOST_SHA256, bytes, bytes.count, buffer.baseAddress)
        }
        return signature.isEmpty ? nil : signature
    }
}

/// A private RSA key, which signs.
///
/// `@unchecked` because of the pointer, for the reason given at `PublicKey`.
package final class RSAPrivateKey: @unchecked Sendable {
    private let key: OpaquePointer

    /// - Parameter pem: PKCS #8 (RFC 5958) or PKCS #1 in PEM, without a passphrase, of 2,048 bits to 8,192. Nil for anything else.
    package init?(pem: String) {
        var text = pem
        guard let key = text.withUTF8({ roost_key_rsa_pem($0.baseAddress, $0.count) }) else { return nil }
        self.key = key
    }

    deinit { roost_key_free(key) }

    /// Signs `bytes` by RSASSA-PKCS1-v1_5 with SHA-256 (RS256 of RFC 7518, section 3.3), as long as the key. Returns nil if memory is
    /// short.
    package func signature(of bytes: [UInt8]) -> [UInt8]? {
        let signature = [UInt8](unsafeUninitializedCapacity: Int(ROOST_LONGEST_SIGNATURE)) { buffer, count in
            count = roost_key_sign(key, ROOST_RSA_PKCS1, ROOST_SHA256, bytes, bytes.count, buffer.baseAddress)
        }
        return signature.isEmpty ? nil : signature
    }
}
