import Crypto
import JWTKit

/// One key, and the algorithms that it may be used with.
///
/// The key decides what it verifies, never the token: a public key is not the kind of thing that an HMAC can be computed
/// with here, whatever a token's header says (RFC 8725, section 3.1).
package struct VerificationKey: Sendable {
    /// `kid`, where the key has one. Secrets of the configuration have none.
    package let id: String?
    private let check: Check

    private enum Check {
        case secret(SymmetricKey, Set<SignatureAlgorithm>)
        case publicKey([SignatureAlgorithm: any JWTAlgorithm])
    }

    /// A shared secret.
    package init(secret: [UInt8], id: String? = nil, for algorithms: Set<SignatureAlgorithm>) {
        self.id = id
        check = .secret(SymmetricKey(data: secret), algorithms.intersection(SignatureAlgorithm.symmetric))
    }

    /// A public key, as what verifies each of its algorithms.
    init(id: String?, verifiers: [SignatureAlgorithm: any JWTAlgorithm]) {
        self.id = id
        check = .publicKey(verifiers.filter { !$0.key.isSymmetric })
    }

    package var algorithms: Set<SignatureAlgorithm> {
        switch check {
        case .secret(_, let algorithms): algorithms
        case .publicKey(let verifiers): Set(verifiers.keys)
        }
    }

    /// The same key for fewer algorithms; nil where none is left.
    func restricted(to allowed: Set<SignatureAlgorithm>) -> VerificationKey? {
        guard !algorithms.isDisjoint(with: allowed) else { return nil }
        switch check {
        case .secret(let key, let algorithms):
            return VerificationKey(id: id, check: .secret(key, algorithms.intersection(allowed)))
        case .publicKey(let verifiers):
            return VerificationKey(id: id, check: .publicKey(verifiers.filter { allowed.contains($0.key) }))
        }
    }

    private init(id: String?, check: Check) {
        self.id = id
        self.check = check
    }

    /// Whether this key signed `signed` under `algorithm`. A code is compared in constant time.
    func verifies(_ signature: [UInt8], of signed: [UInt8], under algorithm: SignatureAlgorithm) -> Bool {
        switch check {
        case .secret(let key, let algorithms):
            guard algorithms.contains(algorithm) else { return false }
            switch algorithm {
            case .hs256: return HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: signed, using: key)
            case .hs384: return HMAC<SHA384>.isValidAuthenticationCode(signature, authenticating: signed, using: key)
            case .hs512: return HMAC<SHA512>.isValidAuthenticationCode(signature, authenticating: signed, using: key)
            default: return false
            }
        case .publicKey(let verifiers):
            guard let verifier = verifiers[algorithm] else { return false }
            do {
                return try verifier.verify(signature, signs: signed)
            } catch {
                // A signature of a length that cannot be: the token's fault, like any other wrong signature.
                return false
            }
        }
    }
}
