import CTestKeys
import Identity
import Signatures
import Wire

/// Somebody who signs tokens.
enum SigningKey {
    case secret([UInt8])
    case pair(KeyPair)

    /// Made once: an RSA key takes its time.
    static let someRSA = SigningKey.pair(KeyPair("RSA", bits: 2048))
    static let otherRSA = SigningKey.pair(KeyPair("RSA", bits: 2048))

    /// A new key that signs with `algorithm`; for RSA always the same.
    init(for algorithm: SignatureAlgorithm) {
        switch algorithm {
        case .hs256, .hs384, .hs512: self = .secret((0..<64).map { _ in UInt8.random(in: 0...255) })
        case .es256: self = .pair(KeyPair("P-256"))
        case .es384: self = .pair(KeyPair("P-384"))
        case .es512: self = .pair(KeyPair("P-521"))
        case .edDSA: self = .pair(KeyPair("ED25519"))
        default: self = Self.someRSA
        }
    }

    /// A stranger's key for `algorithm`.
    static func another(for algorithm: SignatureAlgorithm) -> SigningKey {
        let key = SigningKey(for: algorithm)
        if case .pair(let pair) = key, pair.type == "RSA" { return otherRSA }
        return key
    }

    func sign(_ signed: [UInt8], _ algorithm: SignatureAlgorithm) -> [UInt8] {
        switch self {
        case .secret(let bytes):
            let hash: HashFunction =
                switch algorithm {
                case .hs384: .sha384
                case .hs512: .sha512
                default: .sha256
                }
            return MessageAuthenticationKey(bytes, hash).code(for: signed)
        case .pair(let pair): return pair.sign(signed, algorithm)
        }
    }

    /// A token with exactly this payload, and with this header or the usual one.
    func token(
        _ algorithm: SignatureAlgorithm, _ payload: String = TokenForge.payload, kid: String? = nil,
        header: String? = nil
    ) -> String {
        let usual =
            "{\"alg\":\"\(algorithm.rawValue)\",\"typ\":\"JWT\"" + (kid.map { ",\"kid\":\"\($0)\"" } ?? "") + "}"
        let signed = Base64URL.encode((header ?? usual).utf8) + "." + Base64URL.encode(payload.utf8)
        return signed + "." + Base64URL.encode(sign(Array(signed.utf8), algorithm))
    }

    /// The key as others may know it. `more` is spliced in: `,"use":"sig"`.
    func jwk(kid: String? = nil, alg: SignatureAlgorithm? = nil, _ more: String = "") -> String {
        let names = (kid.map { ",\"kid\":\"\($0)\"" } ?? "") + (alg.map { ",\"alg\":\"\($0.rawValue)\"" } ?? "") + more
        switch self {
        case .secret(let bytes): return #"{"kty":"oct","k":"\#(Base64URL.encode(bytes))"\#(names)}"#
        case .pair(let pair):
            func member(_ name: String, _ part: String) -> String {
                "\"\(name)\":\"\(Base64URL.encode(pair.number(part)))\""
            }
            return switch pair.type {
            case "RSA": #"{"kty":"RSA",\#(member("n", "n")),\#(member("e", "e"))\#(names)}"#
            case "ED25519": #"{"kty":"OKP","crv":"Ed25519",\#(member("x", "pub"))\#(names)}"#
            default: #"{"kty":"EC","crv":"\#(pair.type)",\#(member("x", "x")),\#(member("y", "y"))\#(names)}"#
            }
        }
    }
}

/// A key pair that libcrypto made.
///
/// `@unchecked` because of the pointer: the key is not written to once it is made (CCrypto.h).
final class KeyPair: @unchecked Sendable {
    /// RSA, ED25519 or a curve of ECDSA.
    let type: String
    private let key: OpaquePointer

    init(_ type: String, bits: Int = 0) {
        guard let key = roost_test_key_create(type, bits) else { fatalError("libcrypto made no key of type \(type)") }
        self.type = type
        self.key = key
    }

    deinit { roost_key_free(key) }

    func sign(_ signed: [UInt8], _ algorithm: SignatureAlgorithm) -> [UInt8] {
        let hash =
            switch algorithm.rawValue.suffix(3) {
            case "384": ROOST_SHA384
            case "512": ROOST_SHA512
            default: ROOST_SHA256
            }
        let scheme =
            switch algorithm.rawValue.prefix(2) {
            case "RS": ROOST_RSA_PKCS1
            case "PS": ROOST_RSA_PSS
            case "ES": ROOST_ECDSA
            default: ROOST_ED25519
            }
        return bytes(1024) { out, _ in roost_key_sign(key, scheme, hash, signed, signed.count, out) }
    }

    /// A part of the public key, by the names of CTestKeys.h.
    func number(_ name: String) -> [UInt8] { bytes(2048) { roost_test_key_number(key, name, $0, $1) } }

    var publicPEM: [UInt8] { bytes(8192) { roost_test_key_write(key, ROOST_PUBLIC_PEM, $0, $1) } }
    var publicDER: [UInt8] { bytes(8192) { roost_test_key_write(key, ROOST_PUBLIC_DER, $0, $1) } }

    private func bytes(_ capacity: Int, _ write: (UnsafeMutablePointer<UInt8>?, Int) -> Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: capacity) { $1 = write($0.baseAddress, capacity) }
    }
}

/// A JWK Set.
func keySet(_ keys: String...) -> String { "{\"keys\":[\(keys.joined(separator: ","))]}" }

/// A verifier for the keys of a JWK Set, and for a secret where there is one.
func verifier(
    _ set: String, secret: String? = nil, allowing allowed: Set<SignatureAlgorithm>? = nil,
    rules: ClaimRules = ClaimRules(), onUnknownKey: @escaping @Sendable () -> Void = {}
) throws -> JWTVerifier {
    let secrets = (secret.map { [$0] } ?? []).map {
        VerificationKey(secret: Array($0.utf8), for: SignatureAlgorithm.symmetric)
    }
    let keys = try JWKSet(parsing: Array(set.utf8)).keys
    return JWTVerifier(ActiveKeys(secrets + keys, allowing: allowed), rules: rules, onUnknownKey: onUnknownKey)
}

/// Signs whatever it is told to, as somebody who knows the secret could.
struct TokenForge {
    private let key: [UInt8]

    init(_ secret: String = TokenForge.secret) { self.init(key: Array(secret.utf8)) }

    init(key: [UInt8]) { self.key = key }

    static let secret = "a secret of more than thirty-two bytes"
    static let header = #"{"alg":"HS256","typ":"JWT"}"#
    /// Good until the year 2096.
    static let payload = #"{"role":"anon","sub":"u1","iat":1000,"exp":4000000000}"#

    func sign(_ payload: String = TokenForge.payload, header: String = TokenForge.header) -> String {
        let signed = Base64URL.encode(header.utf8) + "." + Base64URL.encode(payload.utf8)
        return signed + "." + signature(signed)
    }

    func signature(_ signed: String) -> String {
        Base64URL.encode(MessageAuthenticationKey(key, .sha256).code(for: Array(signed.utf8)))
    }

    /// What HS512 would append.
    func longCode(_ signed: String) -> [UInt8] {
        MessageAuthenticationKey(key, .sha512).code(for: Array(signed.utf8))
    }
}
