import Documents
import Signatures
import Wire

/// The keys of a JWK Set (RFC 7517, section 5).
package struct JWKSet: Sendable {
    package let keys: [VerificationKey]
    /// The number of entries in `keys` that verify no token: for encryption, of an unknown type, or faulty.
    package let skipped: Int
    /// The text of the set, to tell whether it has changed.
    let text: [UInt8]

    /// More than any identity service needs; a larger set is nonsense or an attack on memory.
    package static let maximumBytes = 262_144
    private static let maximumKeys = 100

    /// Unusable keys are skipped, since a set may hold keys for other purposes (RFC 7517, section 5).
    ///
    /// - Throws: `KeyProblem` if it is no JWK Set, or one whose keys all cannot verify tokens.
    package init(parsing bytes: [UInt8]) throws(KeyProblem) {
        if bytes.starts(with: "-----BEGIN".utf8) {
            throw KeyProblem("it is a PEM file and not a JWK Set; convert the public key to a JWK")
        }
        let document: JSONDocument
        do { document = try JSONDocument(parsing: bytes, limits: .init(bytes: Self.maximumBytes)) } catch {
            // jansson's message may quote a key.
            throw KeyProblem("it is not JSON, at byte \(error.offset)")
        }
        guard let list = document["keys"], list.kind == .array else {
            throw KeyProblem("it is not a JWK Set: an object with an array \"keys\" was expected")
        }
        let entries = list.elements
        guard entries.count <= Self.maximumKeys else {
            throw KeyProblem("it has more than \(Self.maximumKeys) keys")
        }
        let keys = entries.compactMap { JWK($0)?.makeKey() }
        guard entries.isEmpty || !keys.isEmpty else {
            throw KeyProblem("none of its keys can verify a token; RSA, EC, Ed25519 and oct keys for signatures can")
        }
        self.keys = keys
        text = bytes
        skipped = entries.count - keys.count
    }
}

/// One JWK (RFC 7517, section 4), as far as needed to verify signatures.
struct JWK {
    private let json: JSONDocument
    private let id: String?
    /// `alg`: the only algorithm allowed with this key.
    private let algorithm: SignatureAlgorithm?

    /// Nil if the key is not for verification: by `use`, by `key_ops`, or by an `alg` that is no signature algorithm.
    init?(_ json: JSONDocument) {
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

    /// Nil if the key is faulty, too weak or of an unknown type. Private parts, which do not belong in a set of
    /// verification keys, are ignored.
    func makeKey() -> VerificationKey? {
        switch (json["kty"]?.string, json["crv"]?.string) {
        case ("oct", _):
            makeSecretKey()
        case ("RSA", _):
            makePublicKey(SignatureAlgorithm.rsa) { PublicKey(modulus: decodeNumber("n"), exponent: decodeNumber("e")) }
        case ("EC", "P-256"):
            makePublicKey([.es256]) { PublicKey(.p256, x: decodeNumber("x"), y: decodeNumber("y")) }
        case ("EC", "P-384"):
            makePublicKey([.es384]) { PublicKey(.p384, x: decodeNumber("x"), y: decodeNumber("y")) }
        case ("EC", "P-521"):
            makePublicKey([.es512]) { PublicKey(.p521, x: decodeNumber("x"), y: decodeNumber("y")) }
        case ("OKP", "Ed25519"):
            makePublicKey([.edDSA]) { PublicKey(ed25519: decodeNumber("x")) }
        default:
            nil
        }
    }

    /// A symmetric key (RFC 7518, section 6.4).
    private func makeSecretKey() -> VerificationKey? {
        guard let text = json["k"]?.string, let bytes = Base64URL.decode(Array(text.utf8)),
            bytes.count >= TokenMint.minimumBytes, !bytes.starts(with: "-----BEGIN".utf8)
        else { return nil }
        let algorithms = algorithm.map { [$0] } ?? SignatureAlgorithm.symmetric
        let key = VerificationKey(secret: bytes, id: id, for: algorithms)
        return key.algorithms.isEmpty ? nil : key
    }

    /// - Parameter possible: the algorithms for keys of this type; the curve determines the hash (RFC 7518, section
    ///   3.4).
    private func makePublicKey(_ possible: Set<SignatureAlgorithm>, _ make: () -> PublicKey?) -> VerificationKey? {
        let algorithms = algorithm.map { possible.intersection([$0]) } ?? possible
        guard !algorithms.isEmpty, let key = make() else { return nil }
        return VerificationKey(key, id: id, for: algorithms)
    }

    /// Decodes a number or a point; empty if the member is not base64 text, which no valid key has.
    ///
    /// Some services write these in plain base64 or with padding, which RFC 7518 does not allow, but which is
    /// unambiguous.
    private func decodeNumber(_ name: String) -> [UInt8] {
        guard let text = json[name]?.string else { return [] }
        let digits = text.utf8.map { digit in
            switch digit {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: digit
            }
        }
        let padding = digits.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        return Base64URL.decode(digits.dropLast(min(padding, 2))) ?? []
    }
}

/// The reason why keys cannot be used: a sentence for the operator. Contains neither keys nor URLs, since a URL may
/// contain credentials.
package struct KeyProblem: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
