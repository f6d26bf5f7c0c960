package import Hub

/// Settings of a feed: its database connection, and the data it keeps there.
package struct FeedConfiguration: Sendable {
    /// A libpq conninfo or URL. A transaction pooler in front of the database cannot serve a feed.
    package var conninfo: String
    /// Identifies this hub across restarts: its stored cursor and its doorbell belong to the name.
    package var node: String
    /// Time that changes are kept for hubs and clients that are away.
    package var retention: Duration
    /// The interval at which older changes are deleted.
    package var pruneInterval: Duration
    /// Time limit of a statement; after that, the connection counts as dead.
    package var statementLimit: Duration
    package var rhythm: Doorbell.Rhythm
    /// Time limits of clients' filters.
    package var filters = ConditionLimits()
    /// Limits of reading the rows that clients start from.
    package var rows = RowLimits()
    /// True if this hub reads tables from the WAL (`feed.capture`), so that they are captured even without another hub.
    package var readsWAL = false
    /// The tables whose rows' receipts are written back; nil if none.
    package var receiptTables: ReceiptTables?
    /// Number of sessions on which policies are evaluated in parallel.
    package var policySessions = 2
    /// The longest first wait after a lost connection; doubles up to 15 s.
    package var firstRetry: Duration = .seconds(1)

    /// Time after the hub's start in which clients of its last process come back.
    package var recoveryWindow: Duration = .seconds(120)

    package init(
        conninfo: String, node: String = "roost", retention: Duration = .seconds(86_400),
        pruneInterval: Duration = .seconds(60), statementLimit: Duration = .seconds(10),
        rhythm: Doorbell.Rhythm = Doorbell.Rhythm()
    ) {
        self.conninfo = conninfo
        self.node = node
        self.retention = retention
        self.pruneInterval = pruneInterval
        self.statementLimit = statementLimit
        self.rhythm = rhythm
    }
}
