import Hub
import Matching
import Wire

/// Rows that a client wants to start from: of several tables, all of them as one snapshot shows them.
struct RowReading: Sendable {
    /// The rows to read of one table, and how they are shown.
    struct Part: Sendable {
        let statement: RowsStatement
        let view: ChangeView
    }

    /// The rows read of one table.
    struct Answer: Sendable {
        /// For each row the `data` of an INSERT, if events were requested; otherwise the row as JSON.
        var rows: [[UInt8]] = []
        /// The place of the last row, if another one follows.
        var next: [UInt8]?
    }

    enum Outcome: Sendable {
        /// - Parameters:
        ///   - snapshot: the snapshot that all rows show, in Postgres' text; nil if nothing could be read.
        ///   - answers: one for each part, or a sentence with the reason why there is none.
        case read(snapshot: String?, answers: [Result<Answer, SubscriptionError>])
        /// The database does not answer.
        case unavailable
        /// Too many reads of this user are already waiting.
        case tooMany
    }

    let claims: Claims
    let topic: Name
    let parts: [Part]
    /// True if rows become events; otherwise they are left as they are.
    let isForEvents: Bool
    /// Called once, on one of the reader's threads. The taker of the rows reports to `RowReader` when these bytes are
    /// taken.
    let done: @Sendable (_ outcome: Outcome, _ bytes: Int) -> Void

    var user: RowUser { RowUser(role: claims.role, subject: claims.subject) }
}

extension RowReading.Part {
    /// - Throws: if the role may not read the rows, or there is no such table; the sentence says what to do.
    init(_ request: RowsRequest, as role: Name, in catalog: Catalog) throws(SubscriptionError) {
        guard let access = catalog.access(of: role), access.exists else {
            throw SubscriptionError("the database has no role \(role); correct the claim `role` of the token")
        }
        guard let table = catalog.table(schema: request.schema, name: request.table) else {
            throw SubscriptionError(
                "the table is not watched; run: roost watch "
                    + ShellText.quoteArgument(SQLText.qualifiedName(request.schema, request.table)))
        }
        guard let granted = access.table(table.oid) else {
            throw SubscriptionError("permission denied: the role \(role) may not read the table")
        }
        guard access.isAssumable else {
            throw SubscriptionError(
                "the hub may not act as the role \(role); grant it to the hub's own role, as `roost doctor` says")
        }
        statement = try RowsStatement(request, of: table, granted: granted.columns)
        view = ChangeView(selection: request.selection, granted: granted.columns)
    }
}

/// The limits of reading rows.
package struct RowLimits: Sendable {
    /// Time for each table, and for everything that one join requests.
    package var statement = Duration.seconds(2)
    package var together = Duration.seconds(5)
    /// Additional time for the network.
    package var network = Duration.seconds(2)
    /// Bytes of one read, shared by its tables; the last row may exceed it.
    package var bytes = 4_194_304
    /// Number of sessions that read.
    package var sessions = 2
    /// Number of waiting reads, per user and in total.
    package var waitingOfUser = 200
    package var waiting = 20_000
    /// Bytes that were read and that no socket has taken yet, per user and in total; at the limit, reading pauses.
    package var heldOfUser = 8_388_608
    package var held = 67_108_864

    package init() {}

    /// Time for each table of a read.
    func time(forEachOf parts: Int) -> Duration { min(statement, together / max(1, parts)) }
}
