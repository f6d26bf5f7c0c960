import Signatures

/// One key, and the algorithms that it may be used with.
///
/// The key decides what it verifies, never the token: a public key is not the kind of thing that an HMAC can be computed
/// with here, whatever a token's header says (RFC 8725, section 3.1).
package struct VerificationKey: Sendable {
    /// `kid`, where the key has one. Secrets of the configuration have none.
    package let id: String?
    private let check: Check

    private enum Check {
        case secret([SignatureAlgorithm: MessageAuthenticationKey])
        case publicKey(PublicKey, Set<SignatureAlgorithm>)
    }

    /// A shared secret.
    package init(secret: [UInt8], id: String? = nil, for algorithms: Set<SignatureAlgorithm>) {
        self.id = id
        let keys = algorithms.intersection(SignatureAlgorithm.symmetric).map {
            ($0, MessageAuthenticationKey(secret, $0.hash))
        }
        check = .secret(Dictionary(uniqueKeysWithValues: keys))
    }

    /// A public key, and which of the algorithms that fit it are meant.
    init(_ key: PublicKey, id: String?, for algorithms: Set<SignatureAlgorithm>) {
        self.id = id
        check = .publicKey(key, algorithms)
    }

    package var algorithms: Set<SignatureAlgorithm> {
        switch check {
        case .secret(let keys): Set(keys.keys)
        case .publicKey(_, let algorithms): algorithms
        }
    }

    /// The same key for fewer algorithms; nil where none is left.
    func restricted(to allowed: Set<SignatureAlgorithm>) -> VerificationKey? {
        guard !algorithms.isDisjoint(with: allowed) else { return nil }
        switch check {
        case .secret(let keys):
            return VerificationKey(id: id, check: .secret(keys.filter { allowed.contains($0.key) }))
        case .publicKey(let key, let algorithms):
            return VerificationKey(id: id, check: .publicKey(key, algorithms.intersection(allowed)))
        }
    }

    private init(id: String?, check: Check) {
        self.id = id
        self.check = check
    }

    /// Whether this key signed `signed` under `algorithm`. A code is compared in constant time.
    func verifies(_ signature: [UInt8], of signed: [UInt8], under algorithm: SignatureAlgorithm) -> Bool {
        switch check {
        case .secret(let keys):
            return keys[algorithm]?.isCode(signature, for: signed) ?? false
        case .publicKey(let key, let algorithms):
            guard algorithms.contains(algorithm), let scheme = algorithm.scheme else { return false }
            return key.verifies(signature, of: signed, scheme)
        }
    }
}
