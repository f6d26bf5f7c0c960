package import Hub

/// How a feed reaches its database and what it keeps there.
package struct FeedConfiguration: Sendable {
    /// A libpq conninfo or URL. A transaction pooler in front of the database cannot serve a feed.
    package var conninfo: String
    /// Identifies this hub across restarts: its stored cursor and its doorbell belong to the name.
    package var node: String
    /// How long changes are kept for hubs and clients that were away.
    package var retention: Duration
    /// How often older changes are deleted.
    package var pruneInterval: Duration
    /// How long a statement may take before the connection counts as dead.
    package var statementLimit: Duration
    package var rhythm: Doorbell.Rhythm
    /// How long clients' filters may take.
    package var filters = ConditionLimits()
    /// Bounds of reading the rows that clients begin with.
    package var rows = RowLimits()
    /// Whether this hub reads tables from the WAL (`feed.capture`), so that somebody does where nobody else is there.
    package var readsWAL = false
    /// The tables whose rows' receipts are written back; nil where none are.
    package var receiptTables: ReceiptTables?
    /// On how many sessions policies are asked at once.
    package var policySessions = 2
    /// The longest first wait after a lost connection; doubled up to 15 s.
    package var firstRetry: Duration = .seconds(1)

    /// How long after the hub's start those come back whom its last process served.
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
