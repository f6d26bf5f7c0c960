/// Finds the tokens that a request brings.
/// `docs/protocol.md` has the order for clients.
///
/// An opaque key of a Supabase project (`sb_publishable_…`, `sb_secret_…`) is no token, so what stands behind it counts.
package struct TokenSource {
    let head: HTTPHead

    package init(head: HTTPHead) { self.head = head }

    /// Nil where there is no token.
    package var ofUpgrade: UpgradeTokens? {
        let apiKey = [head.query("apikey"), head.field("apikey"), head.query("token")]
        if let key = Self.first([head.field("x-api-key")]) { return UpgradeTokens(token: key) }
        if let user = Self.first([head.bearer]) {
            return UpgradeTokens(token: user, insteadOfExpired: Self.first(apiKey))
        }
        let last = Self.first(apiKey) ?? apiKey.compactMap { $0 }.first { !$0.isEmpty } ?? head.field("x-api-key")
        return last.map { UpgradeTokens(token: $0) }
    }

    /// Of a call of the HTTP API.
    func ofCall(query: [String: String]) -> String? {
        let bearer = head.bearer
        if let bearer, bearer.mayBeToken { return bearer }
        let all = [bearer, head.field("apikey"), query["apikey"], query["token"]]
        return Self.first(all) ?? all.compactMap { $0 }.first
    }

    static func first(_ found: [String?]) -> String? {
        found.compactMap { $0 }.first { $0.mayBeToken }
    }
}

extension String {
    var mayBeToken: Bool { !isEmpty && !utf8.starts(with: "sb_".utf8) }
}

/// The tokens of an upgrade, in the order to be believed: `x-api-key`, as the original has it, then `Authorization`, which
/// names the user where `apikey` is only the project's public key (supabase-swift sends both), then `apikey` and `token`.
package struct UpgradeTokens {
    package let token: String
    /// What counts where `token` has expired. Clients keep an `Authorization` header from when they were made, and
    /// wake with it long after; the original does not read it at all. Nil where `token` is the last word.
    package var insteadOfExpired: String?
}
