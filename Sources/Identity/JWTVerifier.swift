package import Hub
import Synchronization
package import Wire

/// Verifies tokens: JWTs (RFC 7519) that one of the keys in force signed.
///
/// Verifying never waits: the keys were fetched before, elsewhere. What a good token said is kept until it expires, so
/// that a token that was seen before costs a look-up.
package final class JWTVerifier: TokenVerifier {
    private let state: Mutex<State>
    private let onUnknownKey: @Sendable () -> Void
    private static let capacity = 20_000

    private struct State {
        var keys: ActiveKeys
        var rules: ClaimRules
        var seen: [String: Claims] = [:]
    }

    /// - Parameter onUnknownKey: called where a token names a key that is not in force; on the caller's thread, which
    ///   must not be made to wait.
    package init(
        _ keys: ActiveKeys, rules: ClaimRules = ClaimRules(), onUnknownKey: @escaping @Sendable () -> Void = {}
    ) {
        state = Mutex(State(keys: keys, rules: rules))
        self.onUnknownKey = onUnknownKey
    }

    /// A verifier for the tokens of one secret, of whichever hash.
    package convenience init(secret: String) {
        self.init(ActiveKeys([VerificationKey(secret: Array(secret.utf8), for: SignatureAlgorithm.symmetric)]))
    }

    /// Puts other keys in force. What was verified with the ones before is verified again when it comes next.
    ///
    /// - Parameter rules: nil for the same as before.
    package func replace(_ keys: ActiveKeys, rules: ClaimRules? = nil) {
        state.withLock { $0 = State(keys: keys, rules: rules ?? $0.rules) }
    }

    package func verify(_ token: String, at now: HubTime) throws(Refusal) -> Claims {
        // To a dictionary, strings that look alike are equal: the kelvin sign would pass for a K.
        guard Self.isASCII(token.utf8) else { throw .tokenMalformed }
        let (known, keys, rules) = state.withLock { ($0.seen[token], $0.keys, $0.rules) }
        if let known {
            if let expired = known.expired(at: now) {
                _ = state.withLock { $0.seen.removeValue(forKey: token) }
                throw expired
            }
            return known
        }
        let claims = try check(token, keys, rules, at: now)
        state.withLock { state in
            // Verified with keys that were replaced meanwhile, it must not outlive them.
            guard state.keys === keys else { return }
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
        _ token: String, _ active: ActiveKeys, _ rules: ClaimRules, at now: HubTime
    ) throws(Refusal) -> Claims {
        let parts = try ParsedToken(token)
        guard let algorithm = parts.algorithm else { throw .signatureInvalid }
        let name = parts.header["kid"]
        switch active.match(algorithm, id: name?.string) {
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

/// A JWT in its compact form, taken apart and not verified (RFC 7515, section 7.1).
struct ParsedToken {
    let header: JSON
    let payload: JSON
    let signature: [UInt8]
    /// What the signature covers.
    let signed: [UInt8]

    /// Refuses everything but three parts of canonical base 64, of which the first two are JSON objects.
    init(_ token: String) throws(Refusal) {
        let bytes = Array(token.utf8)
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Self.object(parts[0]), let payload = Self.object(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { throw .tokenMalformed }
        self.header = header
        self.payload = payload
        self.signature = signature
        signed = Array(bytes[..<parts[1].endIndex])
    }

    /// How the token says it is signed. `none`, in any letter case, is no algorithm here.
    var algorithm: SignatureAlgorithm? {
        // `crit` lists extensions that must be understood (RFC 7515, section 4.1.11); none is.
        guard header["crit"] == nil else { return nil }
        return header["alg"]?.string.flatMap { SignatureAlgorithm(rawValue: $0) }
    }

    private static func object(_ part: ArraySlice<UInt8>) -> JSON? {
        guard let bytes = Base64URL.decode(part) else { return nil }
        do {
            let json = try JSON(parsing: bytes)
            return json.kind == .object ? json : nil
        } catch {
            return nil
        }
    }
}
