import Signatures

/// The operator's key for APNs (a `.p8` file from Apple's developer pages), which signs provider tokens.
package struct ProviderKey: Sendable {
    /// The ten characters of the developer team.
    package let teamID: String
    /// The ten characters that Apple gave the key.
    package let keyID: String
    let key: P256PrivateKey

    /// - Parameter pem: PKCS #8 in PEM; line breaks may be written as `\n`, as in an environment variable.
    /// - Throws: `ProviderKeyError`, one sentence that never quotes the key.
    package init(teamID: String, keyID: String, pem: String) throws(ProviderKeyError) {
        guard Self.isIdentifier(teamID) else { throw .team }
        guard Self.isIdentifier(keyID) else { throw .keyID }
        let lines = pem.replacing("\\r", with: "").replacing("\\n", with: "\n")
        let text = lines.split(whereSeparator: \.isNewline).map { $0.trimming(while: \.isWhitespace) }
            .filter { !$0.isEmpty }.joined(separator: "\n")
        guard !text.isEmpty else { throw .empty }
        guard text.hasPrefix("-----BEGIN ") else { throw .notPEM }
        guard let key = P256PrivateKey(pem: text) else { throw .unusable }
        self.key = key
        self.teamID = teamID
        self.keyID = keyID
    }

    /// The name of the key, for the log and for the operator.
    var name: String { "key \(keyID) of team \(teamID)" }

    private static func isIdentifier(_ text: String) -> Bool {
        text.utf8.count == 10
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0 & 0xDF) }
    }
}

extension Substring {
    fileprivate func trimming(while isTrimmed: (Character) -> Bool) -> Substring {
        let rest = drop(while: isTrimmed)
        let end = rest.lastIndex { !isTrimmed($0) }.map(rest.index(after:))
        return rest[..<(end ?? rest.startIndex)]
    }
}

/// The reason why a provider key cannot be used.
package enum ProviderKeyError: Error, Equatable {
    case team, keyID, empty, notPEM, unusable
}

extension ProviderKeyError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .team:
            "The APNs team id is not ten letters and digits: copy it from the membership page of developer.apple.com."
        case .keyID:
            "The APNs key id is not ten letters and digits: it is in the name of the file, AuthKey_KEYID.p8."
        case .empty: "The APNs private key is empty: give the text of the .p8 file."
        case .notPEM:
            "The APNs private key does not begin with -----BEGIN PRIVATE KEY-----: give the whole text of the .p8 "
                + "file, with its first and last line (line breaks may be written as \\n)."
        case .unusable:
            "The APNs private key is not a P-256 key in PKCS #8: give the .p8 file as Apple issued it, not a "
                + "certificate and not a key of another kind."
        }
    }
}
