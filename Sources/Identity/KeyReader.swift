import JWTKit
import Wire

/// Reads one JWK (RFC 7517, section 4) as far as it verifies signatures.
struct KeyReader {
    private let json: JSON
    private let id: String?
    /// `alg`: what the key is limited to.
    private let algorithm: SignatureAlgorithm?

    /// Nil where the key is not for verifying: by `use`, by `key_ops`, or by an `alg` that is no signature's.
    init?(_ json: JSON) {
        guard json.kind == .object else { return nil }
        if let use = json["use"], use.string != "sig" { return nil }
        if let operations = json["key_ops"], !operations.elements.contains(where: { $0.string == "verify" }) {
            return nil
        }
        if let id = json["kid"], id.kind != .string { return nil }
        if let name = json["alg"] {
            guard let algorithm = name.string.flatMap({ SignatureAlgorithm(rawValue: $0) }) else { return nil }
            self.algorithm = algorithm
        } else {
            algorithm = nil
        }
        self.json = json
        id = json["kid"]?.string
    }

    /// Nil where the key is faulty, too weak or of a type that is not known.
    func key() async -> VerificationKey? {
        switch json["kty"]?.string {
        case "oct": secret()
        case "RSA": await publicKey(SignatureAlgorithm.rsa)
        case "EC": await publicKey(Self.curves[json["crv"]?.string ?? ""] ?? [])
        case "OKP": await publicKey(json["crv"]?.string == "Ed25519" ? [.edDSA] : [])
        default: nil
        }
    }

    /// The curve decides the hash (RFC 7518, section 3.4).
    private static let curves: [String: Set<SignatureAlgorithm>] = [
        "P-256": [.es256], "P-384": [.es384], "P-521": [.es512],
    ]

    /// A symmetric key (RFC 7518, section 6.4). JWTKit reads none.
    private func secret() -> VerificationKey? {
        guard let text = json["k"]?.string, let bytes = Base64URL.decode(Array(text.utf8)),
            bytes.count >= TokenMint.minimumBytes, !bytes.starts(with: "-----BEGIN".utf8)
        else { return nil }
        let algorithms = algorithm.map { [$0] } ?? SignatureAlgorithm.symmetric
        let key = VerificationKey(secret: bytes, id: id, for: algorithms)
        return key.algorithms.isEmpty ? nil : key
    }

    private func publicKey(_ possible: Set<SignatureAlgorithm>) async -> VerificationKey? {
        var verifiers: [SignatureAlgorithm: any JWTAlgorithm] = [:]
        for candidate in algorithm.map({ possible.intersection([$0]) }) ?? possible {
            guard let verifier = await verifier(candidate) else { return nil }
            verifiers[candidate] = verifier
        }
        return verifiers.isEmpty ? nil : VerificationKey(id: id, verifiers: verifiers)
    }

    /// Private parts, which have no business in a set of verification keys, are left alone.
    private func verifier(_ algorithm: SignatureAlgorithm) async -> (any JWTAlgorithm)? {
        let any = JWKIdentifier(string: "any")
        let name = JWK.Algorithm(rawValue: algorithm.rawValue)
        let x = json["x"]?.string
        let jwk: JWK
        switch algorithm {
        case .es256, .es384, .es512:
            let curve = json["crv"]?.string.flatMap { ECDSACurve(rawValue: $0) }
            jwk = .ecdsa(name, identifier: any, x: x, y: json["y"]?.string, curve: curve)
        case .edDSA:
            jwk = .octetKeyPair(name, identifier: any, x: x, y: nil, curve: .ed25519)
        default:
            guard let modulus = json["n"]?.string, modulus.utf8.count <= Self.longestModulus else { return nil }
            jwk = .rsa(name, identifier: any, modulus: modulus, exponent: json["e"]?.string)
        }
        do {
            return try await JWTKeyCollection().add(jwk: jwk).getKey(for: any)
        } catch {
            return nil
        }
    }

    /// 8,192 bits in base 64. A check takes time in the square of the length, and it is a loop's time.
    private static let longestModulus = 1366
}
