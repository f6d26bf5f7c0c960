package import Wire

/// `config.broadcast.replay` of a join: messages that were sent before it (wire-protocol B).
package struct ReplayRequest: Sendable, Equatable {
    /// Milliseconds since 1970; nothing that was sent earlier.
    package let since: Int
    /// The newest so many.
    package let limit: Int

    /// The original's, for one join.
    package static let largestLimit = 25
    /// The years 0 to 9999, as the original takes them; Postgres' timestamps reach further.
    private static let years = -62_167_219_200_000...253_402_300_799_999

    package init(since: Int, limit: Int = largestLimit) {
        self.since = since
        self.limit = limit
    }

    /// Nil where it is not `{since: integer, limit?: integer}`. A limit beyond what is served takes the nearest one that
    /// is, as in the original.
    package init?(_ json: JSON) {
        guard let since = json["since"]?.int, Self.years.contains(since) else { return nil }
        var limit = Self.largestLimit
        if let wish = json["limit"], !wish.isNull {
            guard let number = wish.int else { return nil }
            limit = min(max(number, 1), Self.largestLimit)
        }
        self.init(since: since, limit: limit)
    }
}
