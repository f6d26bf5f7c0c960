import Wire

/// The keys of a JWK Set (RFC 7517, section 5).
package struct KeySet: Sendable {
    package let keys: [VerificationKey]
    /// Members of `keys` that verify no token: for encryption, of an unknown type, or faulty.
    package let skipped: Int
    /// As it was read, to tell whether another one is the same.
    let text: [UInt8]

    /// A set as large as an identity service may ever have; more is nonsense or an attack on memory.
    package static let maximumBytes = 262_144
    private static let maximumKeys = 100

    /// What cannot be used is skipped, since a set may hold keys for purposes of others (RFC 7517, section 5).
    ///
    /// - Throws: `KeyProblem` where the whole is no JWK Set, or one that holds keys and none of them for tokens.
    package init(parsing bytes: [UInt8]) throws(KeyProblem) {
        if bytes.starts(with: "-----BEGIN".utf8) {
            throw KeyProblem("it is a PEM file and not a JWK Set; convert the public key to a JWK")
        }
        let json: JSON
        do { json = try JSON(parsing: bytes) } catch {
            throw KeyProblem("it is not JSON, at byte \(error.offset)")
        }
        guard let list = json["keys"], list.kind == .array else {
            throw KeyProblem("it is no JWK Set: an object with an array \"keys\" was expected")
        }
        let entries = list.elements(upTo: Self.maximumKeys + 1)
        guard entries.count <= Self.maximumKeys else {
            throw KeyProblem("it has more than \(Self.maximumKeys) keys")
        }
        let keys = entries.compactMap { KeyReader($0)?.key() }
        guard entries.isEmpty || !keys.isEmpty else {
            throw KeyProblem("none of its keys can verify a token; RSA, EC, Ed25519 and oct keys for signatures can")
        }
        self.keys = keys
        text = bytes
        skipped = entries.count - keys.count
    }
}
