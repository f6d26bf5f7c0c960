import Hub
import Matching
import Wire

/// Rows that somebody wants to begin with: of several tables, and all of them as one snapshot shows them.
struct RowReading: Sendable {
    /// What is to be read of one table, and how it is shown.
    struct Part: Sendable {
        let statement: RowsStatement
        let view: ChangeView
    }

    /// What was read of one table.
    struct Answer: Sendable {
        /// The `data` of an INSERT for each row, where it was asked for so; else each row as JSON.
        var rows: [[UInt8]] = []
        /// The place of the last row, where another follows it.
        var next: [UInt8]?
    }

    enum Outcome: Sendable {
        /// - Parameters:
        ///   - snapshot: what all of them show, as Postgres writes it; nil where nothing could be read.
        ///   - answers: one for each part, or a sentence that says why there is none.
        case read(snapshot: String?, answers: [Result<Answer, SubscriptionError>])
        /// The database does not answer.
        case unavailable
        /// Too much of this user's waits already.
        case tooMany
    }

    let claims: Claims
    let topic: Name
    let parts: [Part]
    /// Rows become events; else they stay what they are.
    let isForEvents: Bool
    /// Called once, on a thread of the reader's. Whoever takes the rows says so (`RowReader.isTaken`), with this many bytes.
    let done: @Sendable (_ outcome: Outcome, _ bytes: Int) -> Void

    var user: RowUser { RowUser(role: claims.role, subject: claims.subject) }
}

extension RowReading.Part {
    /// - Throws: where the role may not read that, or there is no such table; the sentence says what to do.
    init(_ request: RowsRequest, as role: Name, in catalog: Catalog) throws(SubscriptionError) {
        guard let access = catalog.access(of: role), access.exists else {
            throw SubscriptionError("the database has no role \(role); correct the claim `role` of the token")
        }
        guard let table = catalog.table(schema: request.schema, name: request.table) else {
            throw SubscriptionError(
                "the table is not watched; run: roost watch "
                    + ShellText.argument(SQLText.qualified(request.schema, request.table)))
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

/// What reading rows may cost.
package struct RowLimits: Sendable {
    /// For each table, and for all that one join asks for.
    package var statement = Duration.seconds(2)
    package var together = Duration.seconds(5)
    /// How long the network may take beside that.
    package var network = Duration.seconds(2)
    /// Of one reading, shared by its tables; the last row may go beyond it.
    package var bytes = 4_194_304
    /// Sessions that read.
    package var sessions = 2
    /// Readings of one user that may wait, and of all.
    package var waitingOfUser = 200
    package var waiting = 20_000
    /// Bytes that were read and that no socket has taken yet, of one user and of all; nothing more is read for them then.
    package var heldOfUser = 8_388_608
    package var held = 67_108_864

    package init() {}

    /// For each table of a reading.
    func time(forEachOf parts: Int) -> Duration { min(statement, together / max(1, parts)) }
}
