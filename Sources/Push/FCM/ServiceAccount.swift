import Documents
import Signatures
import Wire

/// The operator's account at Google (a JSON file from the Firebase console), on whose behalf pushes are sent.
package struct ServiceAccount: Sendable {
    package let project: String
    let email: String
    let keyID: String
    let key: RSAPrivateKey
    /// The URL that exchanges its assertions for access tokens: `token_uri`.
    package let tokenURL: String

    /// In bytes; Google's files have 2,400.
    private static let limits = JSONDocument.Limits(bytes: 65_536, depth: 8)

    /// - Parameter json: the text of the file.
    /// - Throws: `ServiceAccountError`, one sentence that never quotes the key.
    package init(json: [UInt8]) throws(ServiceAccountError) {
        let document: JSONDocument
        do { document = try JSONDocument(parsing: json, limits: Self.limits) } catch { throw .notJSON }
        guard document["type"]?.string == "service_account" else { throw .otherKind }
        func text(_ name: String) throws(ServiceAccountError) -> String {
            guard let text = document[name]?.string, !text.isEmpty else { throw .missing(name) }
            return text
        }
        project = try text("project_id")
        email = try text("client_email")
        keyID = try text("private_key_id")
        guard Self.isProject(project) else { throw .badProject }
        guard let key = RSAPrivateKey(pem: try text("private_key")) else { throw .badKey }
        self.key = key
        tokenURL = document["token_uri"]?.string ?? "https://oauth2.googleapis.com/token"
        guard tokenURL.hasPrefix("https://"), tokenURL.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .badTokenURL
        }
    }

    /// Whether a text is a project's id or number, as it appears in the path of a request.
    private static func isProject(_ text: String) -> Bool {
        text.utf8.count <= 64
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                default: "-:.".utf8.contains(byte)
                }
            }
    }
}

/// The reason why a file is no service account.
package enum ServiceAccountError: Error, Equatable {
    case notJSON, otherKind, badProject, badKey, badTokenURL
    case missing(String)
}

extension ServiceAccountError: CustomStringConvertible {
    package var description: String {
        let source =
            "take the file that the Firebase console makes under Project settings, Service accounts, Generate new private key."
        return switch self {
        case .notJSON: "It is not JSON: \(source)"
        case .otherKind: "It is no service account, as \"type\" is not \"service_account\": \(source)"
        case .missing(let name): "It has no \"\(name)\": \(source)"
        case .badProject: "Its \"project_id\" is none: \(source)"
        case .badKey: "Its \"private_key\" is no RSA key in PEM, of 2,048 bits at least: \(source)"
        case .badTokenURL: "Its \"token_uri\" is no https URL: \(source)"
        }
    }
}
