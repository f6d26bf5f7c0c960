/// All keys in force at one moment. Immutable: new keys make a new ring.
package final class KeyRing: Sendable {
    package let keys: [VerificationKey]
    private let identified: [String: [VerificationKey]]
    private let fitting: [SignatureAlgorithm: [VerificationKey]]
    private let anonymous: [SignatureAlgorithm: [VerificationKey]]

    /// How many keys a token that names none is tried against: a check of an RSA or EC signature is a good part of a
    /// millisecond of a loop that serves others meanwhile.
    private static let trials = 8

    /// - Parameter allowed: what the operator lets in; nil for all.
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

    /// What a token's header leads to.
    enum Match {
        /// Keys to try, in turn.
        case keys([VerificationKey])
        /// A key that is not here, but may be where the keys come from.
        case unknown
        /// No key would ever do.
        case none
    }

    /// - Parameter id: the token's `kid`, if it has one.
    func match(_ algorithm: SignatureAlgorithm, id: String?) -> Match {
        guard let id else { return fitting[algorithm].map { .keys($0) } ?? .unknown }
        if let named = identified[id] {
            // The name is known; under another algorithm than the key's own it is a forgery, not a new key.
            let usable = named.filter { $0.algorithms.contains(algorithm) }
            return usable.isEmpty ? .none : .keys(Array(usable.prefix(Self.trials)))
        }
        // Identity services put a `kid` into tokens that they sign with the shared secret, which has no name here.
        return anonymous[algorithm].map { .keys($0) } ?? .unknown
    }
}
