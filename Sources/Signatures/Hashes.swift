import CCrypto

/// The SHA-2 hashes (FIPS 180-4) used for signatures and message authentication codes.
package enum HashFunction: Sendable {
    case sha256, sha384, sha512

    var cValue: roost_hash {
        switch self {
        case .sha256: ROOST_SHA256
        case .sha384: ROOST_SHA384
        case .sha512: ROOST_SHA512
        }
    }

    /// Returns the hash of `bytes`: 32, 48 or 64 bytes.
    package func hash(_ bytes: [UInt8]) -> [UInt8] {
        filled(atMost: Int(ROOST_LONGEST_HASH)) { roost_hash(cValue, bytes, bytes.count, $0) }
    }
}

/// A secret for message authentication codes (HMAC, RFC 2104), for one hash.
///
/// `@unchecked` because of the pointer: libcrypto's state is written only by the initializer and copied for each code, so that any
/// thread may use it; it is freed with the last reference.
package final class MessageAuthenticationKey: @unchecked Sendable {
    private let state: OpaquePointer

    package init(_ secret: [UInt8], _ hash: HashFunction) {
        guard let state = roost_mac_create(hash.cValue, secret, secret.count) else {
            fatalError("libcrypto has no memory for a key")
        }
        self.state = state
    }

    deinit { roost_mac_free(state) }

    /// Returns the code of `bytes`, as long as the hash.
    package func code(for bytes: [UInt8]) -> [UInt8] {
        filled(atMost: Int(ROOST_LONGEST_HASH)) { roost_mac_code(state, bytes, bytes.count, $0) }
    }

    /// Whether `code` is that of `bytes`; compared in constant time.
    package func isCode(_ code: [UInt8], for bytes: [UInt8]) -> Bool {
        let right = self.code(for: bytes)
        return code.count == right.count && roost_equal(code, right, right.count)
    }
}

/// Makes an array that C fills: `write` gets its start and returns the number of bytes written, 0 only if memory was short.
private func filled(atMost capacity: Int, _ write: (UnsafeMutablePointer<UInt8>?) -> Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
        count = write(buffer.baseAddress)
        precondition(count > 0, "libcrypto has no memory for a hash")
    }
}
