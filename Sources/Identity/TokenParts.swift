import Wire

/// A JWT in its compact form, taken apart and not verified (RFC 7515, section 7.1).
struct TokenParts {
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
