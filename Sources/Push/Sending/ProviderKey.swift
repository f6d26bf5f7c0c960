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

    /// What its problems are filed under; also fit for a log.
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
