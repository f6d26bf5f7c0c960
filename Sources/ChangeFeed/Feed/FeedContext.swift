import Postgres

/// What work posted to the feed's thread may see and ask. Valid only during the work.
package struct FeedContext {
    private let ask: ((String, [String?]) throws -> [[String?]])?
    private let refresh: ((Set<String>) throws -> Catalog)?
    package let catalog: Catalog
    package let status: FeedStatus

    init(
        catalog: Catalog, status: FeedStatus, ask: ((String, [String?]) throws -> [[String?]])? = nil,
        refresh: ((Set<String>) throws -> Catalog)? = nil
    ) {
        self.catalog = catalog
        self.status = status
        self.ask = ask
        self.refresh = refresh
    }

    /// Whether `query` would be sent.
    package var canQuery: Bool { ask != nil }

    /// Runs one statement on the feed's connection and waits for it.
    ///
    /// - Parameter parameters: for `$1`, `$2`, …, as text.
    /// - Throws: `PostgresError`; kind `server` is the statement's fault, the others mean that the database is away.
    package func query(_ sql: String, _ parameters: [String?] = []) throws -> [[String?]] {
        guard let ask else {
            throw PostgresError(.connection, "The database is away; try again when the hub is ready.")
        }
        return try ask(sql, parameters)
    }

    /// The catalog as it is this very moment: what was watched or altered since the last poll counts.
    /// The consumer hears of it, too.
    ///
    /// - Parameter roles: whose access it is to tell, besides those it told of before.
    /// - Throws: `PostgresError`.
    package func currentCatalog(knowing roles: Set<String> = []) throws -> Catalog {
        guard let refresh else {
            throw PostgresError(.connection, "The database is away; try again when the hub is ready.")
        }
        return try refresh(roles)
    }

    /// Tells "not watched" from "does not exist".
    package func tableExists(schema: String, name: String) throws -> Bool {
        try !query(CatalogSQL.findTable.text, [schema, name]).isEmpty
    }
}

/// Work for the feed's thread.
package typealias FeedWork = @Sendable (FeedContext) -> Void
