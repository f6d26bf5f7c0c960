/// Where the keys come from, and what a token must say.
package struct KeySettings: Sendable {
    /// The secret in use and those before it.
    package var secrets: [String] = []
    /// The path of a JWK Set.
    package var file: String?
    /// Where a JWK Set is fetched, http or https.
    package var url: String?
    /// Nil: all.
    package var algorithms: Set<SignatureAlgorithm>?
    package var rules = ClaimRules()
    package var rhythm = Rhythm()

    /// How often is looked.
    package struct Rhythm: Sendable {
        /// A file's time of change, and whether anything else is due.
        package var look: Duration = .seconds(2)
        /// The URL, when all is well.
        package var refresh: Duration = .seconds(300)
        /// The URL, after a failure.
        package var retry: Duration = .seconds(15)
        /// The least time between two fetches, however many tokens name keys that nobody knows.
        package var pause: Duration = .seconds(5)

        package init() {}
    }

    package init() {}
}
