package import Hub
import Synchronization
package import Wire

/// Verifies tokens: JWTs (RFC 7519) signed by one of the keys in force.
///
/// Verification never waits: the keys are fetched in advance, elsewhere. The claims of a valid token are cached until
/// it expires, so that a known token costs one look-up.
package final class JWTVerifier: TokenVerifier {
    private let state: Mutex<State>
    private let onUnknownKey: @Sendable () -> Void
    private static let capacity = 20_000

    private struct State {
        var keys: ActiveKeys
        var rules: ClaimRules
        var seen: [String: Claims] = [:]
    }

    /// - Parameter onUnknownKey: called if a token names a key that is not in force, on the caller's thread, which it
    ///   must not block.
    package init(
        _ keys: ActiveKeys, rules: ClaimRules = ClaimRules(), onUnknownKey: @escaping @Sendable () -> Void = {}
    ) {
        state = Mutex(State(keys: keys, rules: rules))
        self.onUnknownKey = onUnknownKey
    }

    /// A verifier for tokens signed with one secret, by any HMAC.
    package convenience init(secret: String) {
        self.init(ActiveKeys([VerificationKey(secret: Array(secret.utf8), for: SignatureAlgorithm.symmetric)]))
    }

    /// Puts other keys in force. Tokens verified with the previous ones are verified again at their next use.
    ///
    /// - Parameter rules: nil to keep the current ones.
    package func replaceKeys(_ keys: ActiveKeys, rules: ClaimRules? = nil) {
        state.withLock { $0 = State(keys: keys, rules: rules ?? $0.rules) }
    }

    package func verifyToken(_ token: String, at now: HubTime) throws(Refusal) -> Claims {
        // Dictionaries compare strings by canonical equivalence: the Kelvin sign would pass for a K.
        guard Self.isASCII(token.utf8) else { throw .tokenMalformed }
        let (known, keys, rules) = state.withLock { ($0.seen[token], $0.keys, $0.rules) }
        if let known {
            if let expired = known.expiryRefusal(at: now) {
                _ = state.withLock { $0.seen.removeValue(forKey: token) }
                throw expired
            }
            return known
        }
        let claims = try checkToken(token, keys, rules, at: now)
        state.withLock { state in
            // A result obtained with keys that were replaced meanwhile must not outlive them.
            guard state.keys === keys else { return }
            if state.seen.count >= Self.capacity { state.seen.removeAll(keepingCapacity: true) }
            state.seen[token] = claims
        }
        return claims
    }

    /// Checks all bytes at once if they are contiguous, as every call brings a token of hundreds of bytes.
    private static func isASCII(_ text: String.UTF8View) -> Bool {
        let all = text.withContiguousStorageIfAvailable { $0.reduce(0, |) }
        return all.map { $0 < 0x80 } ?? text.allSatisfy { $0 < 0x80 }
    }

    private func checkToken(
        _ token: String, _ active: ActiveKeys, _ rules: ClaimRules, at now: HubTime
    ) throws(Refusal) -> Claims {
        let parts = try ParsedToken(token)
        guard let algorithm = parts.algorithm else { throw .signatureInvalid }
        let name = parts.header["kid"]
        switch active.matchKeys(algorithm, id: name?.string) {
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
        let claims = try rules.validateClaims(parts.payload)
        if let expired = claims.expiryRefusal(at: now) { throw expired }
        try rules.checkBeginning(parts.payload, at: now)
        return claims
    }
}

/// A JWT in compact form, split and decoded but not verified (RFC 7515, section 7.1).
struct ParsedToken {
    let header: JSON
    let payload: JSON
    let signature: [UInt8]
    /// The bytes that the signature covers.
    let signed: [UInt8]

    /// Refuses everything but three parts of canonical base64, of which the first two are JSON objects.
    init(_ token: String) throws(Refusal) {
        let bytes = Array(token.utf8)
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Self.parseObject(parts[0]), let payload = Self.parseObject(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { throw .tokenMalformed }
        self.header = header
        self.payload = payload
        self.signature = signature
        signed = Array(bytes[..<parts[1].endIndex])
    }

    /// The algorithm that the token names. `none`, in any letter case, is not an algorithm here.
    var algorithm: SignatureAlgorithm? {
        // `crit` lists extensions that must be understood (RFC 7515, section 4.1.11); the hub supports none.
        guard header["crit"] == nil else { return nil }
        return header["alg"]?.string.flatMap { SignatureAlgorithm(rawValue: $0) }
    }

    private static func parseObject(_ part: ArraySlice<UInt8>) -> JSON? {
        guard let bytes = Base64URL.decode(part) else { return nil }
        do {
            let json = try JSON(parsing: bytes)
            return json.kind == .object ? json : nil
        } catch {
            return nil
        }
    }
}
