import Signatures

/// The ways a token may be signed: RFC 7518, section 3.1, and EdDSA with Ed25519 (RFC 8037, section 3.1).
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

    /// Who can verify such a token can also sign one.
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

    /// How a key pair signs with it; nil for those that a shared secret signs with.
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
