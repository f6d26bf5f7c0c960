/// Finds the tokens in a request; `docs/protocol.md` documents the order for clients.
///
/// Opaque keys of a Supabase project (`sb_publishable_…`, `sb_secret_…`) are not tokens, so the search goes on past
/// them.
package struct TokenSource {
    let head: HTTPHead

    package init(head: HTTPHead) { self.head = head }

    /// Nil if there is no token.
    package var ofUpgrade: UpgradeTokens? {
        let apiKey = [head.query("apikey"), head.field("apikey"), head.query("token")]
        if let key = Self.first([head.field("x-api-key")]) { return UpgradeTokens(token: key) }
        if let user = Self.first([head.bearer]) {
            return UpgradeTokens(token: user, insteadOfExpired: Self.first(apiKey))
        }
        let last = Self.first(apiKey) ?? apiKey.compactMap { $0 }.first { !$0.isEmpty } ?? head.field("x-api-key")
        return last.map { UpgradeTokens(token: $0) }
    }

    /// The token of an HTTP API call.
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

/// The tokens of an upgrade, in order of precedence: `x-api-key`, as in the original, then `Authorization`, which names
/// the user when `apikey` is only the project's public key (supabase-swift sends both), then `apikey` and `token`.
package struct UpgradeTokens {
    package let token: String
    /// The fallback if `token` has expired. Clients keep the `Authorization` header that they were created with, and
    /// wake with it long after; the original does not read that header at all. Nil if there is no fallback.
    package var insteadOfExpired: String?
}
