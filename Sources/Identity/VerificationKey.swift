import Signatures

/// One key, with the algorithms that it may be used with.
///
/// The key determines the check, never the token: an HMAC cannot be computed with a public key here, whatever a token's
/// header says (RFC 8725, section 3.1).
package struct VerificationKey: Sendable {
    /// `kid`, if the key has one. Secrets in the configuration have none.
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

    /// A public key, with the intended ones among the algorithms that fit it.
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

    /// The same key for fewer algorithms; nil if none is left.
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

    /// Whether this key signed `signed` under `algorithm`. Authentication codes are compared in constant time.
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

/// All keys in force at one moment. Immutable: new keys make a new object, whose identity tells their tokens from those
/// verified with the previous keys.
package final class ActiveKeys: Sendable {
    package let keys: [VerificationKey]
    private let identified: [String: [VerificationKey]]
    private let fitting: [SignatureAlgorithm: [VerificationKey]]
    private let anonymous: [SignatureAlgorithm: [VerificationKey]]

    /// The most keys that are tried for a token that names none: checking an RSA or EC signature takes a good part of a
    /// millisecond on a loop that serves others, too.
    private static let trials = 8

    /// - Parameter allowed: the algorithms that the operator accepts; nil for all.
    package init(_ keys: [VerificationKey], allowing allowed: Set<SignatureAlgorithm>? = nil) {
        let keys = allowed.map { allowed in keys.compactMap { $0.restricted(to: allowed) } } ?? keys
        self.keys = keys
        identified = Dictionary(grouping: keys.filter { $0.id != nil }, by: { $0.id ?? "" })
        fitting = Self.byAlgorithm(keys)
        anonymous = Self.byAlgorithm(keys.filter { $0.id == nil })
    }

    private static func byAlgorithm(_ keys: [VerificationKey]) -> [SignatureAlgorithm: [VerificationKey]] {
        var sorted: [SignatureAlgorithm: [VerificationKey]] = [:]
        for key in keys {
            for algorithm in key.algorithms where sorted[algorithm, default: []].count < trials {
                sorted[algorithm, default: []].append(key)
            }
        }
        return sorted
    }

    /// The keys that a token's header selects.
    enum Match {
        /// Keys to try in order.
        case keys([VerificationKey])
        /// An unknown key, which the sources may have by now.
        case unknown
        /// No key can match.
        case none
    }

    /// - Parameter id: the token's `kid`, if it has one.
    func matchKeys(_ algorithm: SignatureAlgorithm, id: String?) -> Match {
        guard let id else { return fitting[algorithm].map { .keys($0) } ?? .unknown }
        if let named = identified[id] {
            // The name is known; under an algorithm that is not the key's it is a forgery, not a new key.
            let usable = named.filter { $0.algorithms.contains(algorithm) }
            return usable.isEmpty ? .none : .keys(Array(usable.prefix(Self.trials)))
        }
        // Identity services put a `kid` into tokens that they sign with the shared secret, which has no name here.
        return anonymous[algorithm].map { .keys($0) } ?? .unknown
    }
}

/// The accepted signature algorithms: RFC 7518, section 3.1, and EdDSA with Ed25519 (RFC 8037, section 3.1).
package enum SignatureAlgorithm: String, CaseIterable, Sendable {
    case hs256 = "HS256"
    case hs384 = "HS384"
    case hs512 = "HS512"
    case rs256 = "RS256"
    case rs384 = "RS384"
    case rs512 = "RS512"
    case ps256 = "PS256"
    case ps384 = "PS384"
    case ps512 = "PS512"
    case es256 = "ES256"
    case es384 = "ES384"
    case es512 = "ES512"
    case edDSA = "EdDSA"

    /// True if the key that verifies a token can also sign one.
    package var isSymmetric: Bool { Self.symmetric.contains(self) }

    package static let symmetric: Set<SignatureAlgorithm> = [.hs256, .hs384, .hs512]
    static let rsa: Set<SignatureAlgorithm> = [.rs256, .rs384, .rs512, .ps256, .ps384, .ps512]

    var hash: HashFunction {
        switch self {
        case .hs256, .rs256, .ps256, .es256: .sha256
        case .hs384, .rs384, .ps384, .es384: .sha384
        case .hs512, .rs512, .ps512, .es512, .edDSA: .sha512
        }
    }

    /// The scheme for a key pair; nil for algorithms of shared secrets.
    var scheme: SignatureScheme? {
        switch self {
        case .hs256, .hs384, .hs512: nil
        case .rs256, .rs384, .rs512: .rsa(hash)
        case .ps256, .ps384, .ps512: .rsaPSS(hash)
        case .es256, .es384, .es512: .ecdsa(hash)
        case .edDSA: .ed25519
        }
    }
}
