import Crypto
import CryptoExtras
import Foundation
import Identity
import Wire

/// Somebody who signs tokens, by swift-crypto and not by what the hub verifies with.
enum SigningKey {
    case secret([UInt8])
    case rsa(_RSA.Signing.PrivateKey)
    case p256(P256.Signing.PrivateKey)
    case p384(P384.Signing.PrivateKey)
    case p521(P521.Signing.PrivateKey)
    case ed25519(Curve25519.Signing.PrivateKey)

    /// Made once: an RSA key takes its time.
    static let someRSA = SigningKey.rsa(generatedRSA(2048))
    static let otherRSA = SigningKey.rsa(generatedRSA(2048))

    static func generatedRSA(_ bits: Int) -> _RSA.Signing.PrivateKey {
        do { return try _RSA.Signing.PrivateKey(unsafeKeySize: .init(bitCount: bits)) } catch {
            fatalError("no RSA key: \(error)")
        }
    }

    /// A new key that signs with `algorithm`; for RSA one of two.
    init(for algorithm: SignatureAlgorithm) {
        switch algorithm {
        case .hs256, .hs384, .hs512: self = .secret((0..<64).map { _ in UInt8.random(in: 0...255) })
        case .es256: self = .p256(.init())
        case .es384: self = .p384(.init())
        case .es512: self = .p521(.init())
        case .edDSA: self = .ed25519(.init())
        default: self = Self.someRSA
        }
    }

    func sign(_ signed: [UInt8], _ algorithm: SignatureAlgorithm) throws -> [UInt8] {
        switch self {
        case .secret(let bytes):
            let key = SymmetricKey(data: bytes)
            return switch algorithm {
            case .hs384: Array(HMAC<SHA384>.authenticationCode(for: signed, using: key))
            case .hs512: Array(HMAC<SHA512>.authenticationCode(for: signed, using: key))
            default: Array(HMAC<SHA256>.authenticationCode(for: signed, using: key))
            }
        case .rsa(let key):
            let padding: _RSA.Signing.Padding = algorithm.rawValue.hasPrefix("PS") ? .PSS : .insecurePKCS1v1_5
            return switch algorithm {
            case .rs384, .ps384:
                try Array(key.signature(for: SHA384.hash(data: signed), padding: padding).rawRepresentation)
            case .rs512, .ps512:
                try Array(key.signature(for: SHA512.hash(data: signed), padding: padding).rawRepresentation)
            default: try Array(key.signature(for: SHA256.hash(data: signed), padding: padding).rawRepresentation)
            }
        case .p256(let key): return try Array(key.signature(for: signed).rawRepresentation)
        case .p384(let key): return try Array(key.signature(for: signed).rawRepresentation)
        case .p521(let key): return try Array(key.signature(for: signed).rawRepresentation)
        case .ed25519(let key): return try Array(key.signature(for: signed))
        }
    }

    /// A token with exactly this payload, and with this header or the usual one.
    func token(
        _ algorithm: SignatureAlgorithm, _ payload: String = TokenForge.payload, kid: String? = nil,
        header: String? = nil
    ) throws -> String {
        let usual =
            "{\"alg\":\"\(algorithm.rawValue)\",\"typ\":\"JWT\"" + (kid.map { ",\"kid\":\"\($0)\"" } ?? "") + "}"
        let signed = Base64URL.encode((header ?? usual).utf8) + "." + Base64URL.encode(payload.utf8)
        return signed + "." + Base64URL.encode(try sign(Array(signed.utf8), algorithm))
    }

    /// The key as others may know it. `more` is spliced in: `,"use":"sig"`.
    func jwk(kid: String? = nil, alg: SignatureAlgorithm? = nil, _ more: String = "") throws -> String {
        let names = (kid.map { ",\"kid\":\"\($0)\"" } ?? "") + (alg.map { ",\"alg\":\"\($0.rawValue)\"" } ?? "") + more
        func curve(_ name: String, _ raw: Data) -> String {
            let half = raw.count / 2
            return #"{"kty":"EC","crv":"\#(name)","x":"\#(Base64URL.encode(raw.prefix(half)))""#
                + #","y":"\#(Base64URL.encode(raw.suffix(half)))"\#(names)}"#
        }
        switch self {
        case .secret(let bytes): return #"{"kty":"oct","k":"\#(Base64URL.encode(bytes))"\#(names)}"#
        case .rsa(let key):
            let numbers = try key.publicKey.getKeyPrimitives()
            return #"{"kty":"RSA","n":"\#(Base64URL.encode(numbers.modulus))""#
                + #","e":"\#(Base64URL.encode(numbers.publicExponent))"\#(names)}"#
        case .p256(let key): return curve("P-256", key.publicKey.rawRepresentation)
        case .p384(let key): return curve("P-384", key.publicKey.rawRepresentation)
        case .p521(let key): return curve("P-521", key.publicKey.rawRepresentation)
        case .ed25519(let key):
            return
                #"{"kty":"OKP","crv":"Ed25519","x":"\#(Base64URL.encode(key.publicKey.rawRepresentation))"\#(names)}"#
        }
    }
}

/// A JWK Set.
func keySet(_ keys: String...) -> String { "{\"keys\":[\(keys.joined(separator: ","))]}" }

/// A gate for the keys of a JWK Set, and for a secret where there is one.
func gate(
    _ set: String, secret: String? = nil, allowing allowed: Set<SignatureAlgorithm>? = nil,
    rules: ClaimRules = ClaimRules(), onUnknownKey: @escaping @Sendable () -> Void = {}
) async throws -> TokenGate {
    let secrets = (secret.map { [$0] } ?? []).map {
        VerificationKey(secret: Array($0.utf8), for: SignatureAlgorithm.symmetric)
    }
    let keys = try await KeySet(parsing: Array(set.utf8)).keys
    return TokenGate(KeyRing(secrets + keys, allowing: allowed), rules: rules, onUnknownKey: onUnknownKey)
}
