import Identity
import Wire

/// `roost token`.
struct DevelopmentToken {
    var role: String
    var subject: String?
    /// Seconds.
    var lifetime: Int
    /// A JSON object of further claims.
    var claims: String?
    var algorithm = SignatureAlgorithm.hs256

    func signed(with secret: String) throws -> String {
        TokenMint(secret: secret, algorithm: algorithm)
            .mint(role: role, subject: subject, lifetime: lifetime, now: Clock.now(), extra: try extra())
    }

    private func extra() throws -> JSON {
        guard let claims else { return .emptyObject }
        let problem = RunFailure("--claims must be a JSON object, such as '{\"aud\":\"authenticated\"}'.", .usage)
        do {
            let json = try JSON(parsing: Array(claims.utf8))
            guard json.kind == .object else { throw problem }
            return json
        } catch is JSON.SyntaxError {
            throw problem
        }
    }
}
