package import Hub
import Synchronization
package import Wire

/// Verifies tokens: JWTs (RFC 7519) that one of the keys in force signed.
///
/// Verifying never waits: the keys were fetched before, elsewhere. What a good token said is kept until it expires, so
/// that a token that was seen before costs a look-up.
package final class TokenGate: TokenVerifier {
    private let state: Mutex<State>
    private let onUnknownKey: @Sendable () -> Void
    private static let capacity = 20_000

    private struct State {
        var ring: KeyRing
        var rules: ClaimRules
        var seen: [String: Claims] = [:]
    }

    /// - Parameter onUnknownKey: called where a token names a key that is not in the ring; on the caller's thread, which
    ///   must not be made to wait.
    package init(
        _ ring: KeyRing, rules: ClaimRules = ClaimRules(), onUnknownKey: @escaping @Sendable () -> Void = {}
    ) {
        state = Mutex(State(ring: ring, rules: rules))
        self.onUnknownKey = onUnknownKey
    }

    /// A gate for the tokens of one secret, of whichever hash.
    package convenience init(secret: String) {
        self.init(KeyRing([VerificationKey(secret: Array(secret.utf8), for: SignatureAlgorithm.symmetric)]))
    }

    /// Puts other keys in force. What was verified with the ones before is verified again when it comes next.
    ///
    /// - Parameter rules: nil for the same as before.
    package func replace(_ ring: KeyRing, rules: ClaimRules? = nil) {
        state.withLock { $0 = State(ring: ring, rules: rules ?? $0.rules) }
    }

    package func verify(_ token: String, at now: HubTime) throws(Refusal) -> Claims {
        // To a dictionary, strings that look alike are equal: the kelvin sign would pass for a K.
        guard Self.isASCII(token.utf8) else { throw .tokenMalformed }
        let (known, ring, rules) = state.withLock { ($0.seen[token], $0.ring, $0.rules) }
        if let known {
            if let expired = known.expired(at: now) {
                _ = state.withLock { $0.seen.removeValue(forKey: token) }
                throw expired
            }
            return known
        }
        let claims = try check(token, ring, rules, at: now)
        state.withLock { state in
            // Verified with keys that were replaced meanwhile, it must not outlive them.
            guard state.ring === ring else { return }
            if state.seen.count >= Self.capacity { state.seen.removeAll(keepingCapacity: true) }
            state.seen[token] = claims
        }
        return claims
    }

    /// Of all bytes at once where they lie together, as every call brings a token of hundreds.
    private static func isASCII(_ text: String.UTF8View) -> Bool {
        let all = text.withContiguousStorageIfAvailable { $0.reduce(0, |) }
        return all.map { $0 < 0x80 } ?? text.allSatisfy { $0 < 0x80 }
    }

    private func check(
        _ token: String, _ ring: KeyRing, _ rules: ClaimRules, at now: HubTime
    ) throws(Refusal) -> Claims {
        let parts = try TokenParts(token)
        guard let algorithm = parts.algorithm else { throw .signatureInvalid }
        let name = parts.header["kid"]
        switch ring.match(algorithm, id: name?.string) {
        case .keys(let keys):
            guard keys.contains(where: { $0.verifies(parts.signature, of: parts.signed, under: algorithm) }) else {
                throw .signatureInvalid
            }
        case .unknown:
            onUnknownKey()
            throw name?.string == nil ? .signatureInvalid : .keyUnknown
        case .none:
            throw .signatureInvalid
        }
        let claims = try rules.claims(parts.payload)
        if let expired = claims.expired(at: now) { throw expired }
        try rules.checkBeginning(parts.payload, at: now)
        return claims
    }
}
