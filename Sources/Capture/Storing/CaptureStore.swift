import Glibc
import Logging
import Postgres
import Wire
import Workers

/// The session that stores batches together with their positions. On the capture's thread.
final class CaptureStore {
    let connection: PostgresConnection
    /// The position in roost.capture.
    private(set) var position: CapturePosition
    private let log: Logger
    private let incidents: CaptureIncidents
    /// True if texts are bytes in the database's encoding instead of UTF-8: names then have to be ASCII to be read.
    private let demandsASCII: Bool
    private var relations: [ObjectIdentifier: (relation: CapturedRelation, resolved: ResolvedRelation)] = [:]
    private var statements: [StatementKey: String] = [:]
    /// The least care at which a shape's rows are stored: statements with less care cannot be prepared.
    private var usualCare: [RowShape: StoreCare] = [:]
    private var lastName = 0
    /// Whether transient errors are blamed on rows.
    private var blamesRows = false
    /// Transient error states that turned out to be caused by rows, with their times. They need not last to be blamed
    /// again.
    private var statesOfRows: [String: ContinuousClock.Instant] = [:]

    private struct StatementKey: Hashable {
        let shape: RowShape
        let care: StoreCare
    }

    /// Counts of rows that were stored as texts or not stored at all.
    struct Outcome: Equatable {
        /// Rows with texts for values that could not be written as JSON.
        var asTexts = 0
        /// Rows that could not be stored; a marker stands in their place.
        var lost = 0
    }

    /// The limit for storing a batch of at most a few MiB: beyond it, the session hangs.
    private static let limit = Duration.seconds(20)
    /// More than a hub's tables need; a table that is altered again and again leaves unused ones behind.
    private static let mostStatements = 400
    /// After this many failed parts of a group, the rest is stored with more care: each failure costs some round trips.
    private static let mostFailures = 64
    /// The validity of an entry in `statesOfRows`: afterwards the error may again be transient.
    private static let memory = Duration.seconds(600)

    /// - Parameters:
    ///   - connection: the session that leads.
    ///   - position: the position in roost.capture.
    ///   - incidents: warnings about rows by earlier sessions.
    init(
        _ connection: PostgresConnection, from position: CapturePosition, log: Logger, incidents: CaptureIncidents,
        demandsASCII: Bool
    ) throws {
        self.connection = connection
        self.position = position
        self.log = log
        self.incidents = incidents
        self.demandsASCII = demandsASCII
        try connection.prepareStatement("begins", CaptureSQL.storeBegins.text)
        try connection.prepareStatement("lost", CaptureSQL.storeLost.text, types: [1007, 1002, 1185, 3221, 0])
        try connection.prepareStatement("ends", CaptureSQL.storeEnds.text)
    }

    /// Stores a batch together with `end` as the stored position, atomically.
    ///
    /// One row never blocks the others: if Postgres refuses the batch, its rows are stored apart.
    ///
    /// - Parameters:
    ///   - care: the least care.
    ///   - blamesRows: true once the batch has been refused for long. Any error is then blamed on a row, unless nothing
    ///     can be stored.
    /// - Throws: `PostgresError`. After one of kind `connection` only the stored position tells whether the batch is
    ///   stored.
    func store(
        _ batch: CaptureBatch, upTo end: CapturePosition, care: StoreCare = .full, blamesRows: Bool = false
    ) throws -> Outcome {
        self.blamesRows = blamesRows
        statesOfRows = statesOfRows.filter { $0.value + Self.memory > .now }
        if statements.count > Self.mostStatements { try forgetAll() }
        let begins = PreparedCall(
            "begins",
            [
                .text(position.lsn.description), .text(position.part?.commit.description),
                .text(String(position.part?.rows ?? 0)), .text(end.lsn.description),
                .text(end.part?.commit.description), .text(String(end.part?.rows ?? 0)), .text(String(batch.rows)),
                .text("{\(batch.xids.map { String($0) }.joined(separator: ","))}"),
            ])
        var outcome = Outcome()
        do {
            let calls = try batch.groups.map { group in
                PreparedCall(try usualName(for: group, care: care), group.arrays.map { .array($0) })
            }
            try connection.runTogether([begins] + calls + [PreparedCall("ends", [])], within: Self.limit)
        } catch let error as PostgresError where isOfRows(error) {
            log.debug("Rows that were read from the WAL are stored apart: \(error.message)")
            outcome = try storeApart(batch, between: begins, care: care, because: error)
        }
        position = end
        return outcome
    }

    // MARK: Rows apart

    /// The attempts that the rows of a group have cost so far.
    private struct Effort {
        /// A prepared statement may be outdated, as a table was altered; preparing it once more settles that.
        var mayForget = true
        var failures = 0
    }

    /// Whether an error may be caused by a row, or by the statement made for it.
    private func isOfRows(_ error: PostgresError) -> Bool {
        if error.isOfRows { return true }
        guard error.kind == .server, !error.isOfAnotherLeader, let state = error.sqlState else { return false }
        return blamesRows || statesOfRows[state] != nil
    }

    private func storeApart(
        _ batch: CaptureBatch, between begins: PreparedCall, care: StoreCare, because reason: PostgresError
    ) throws -> Outcome {
        var outcome = Outcome()
        try connection.runScript("begin")
        do {
            try connection.runTogether([begins], within: Self.limit)
            if !reason.isOfRows { try demandRoom(for: batch) }
            for group in batch.groups {
                var effort = Effort()
                try storeRows(0..<group.places.count, of: group, care: care, &effort, &outcome)
            }
            try connection.runTogether([PreparedCall("ends", [])], within: Self.limit)
            try connection.runScript("commit")
        } catch {
            if !connection.isBroken { try connection.runScript("rollback") }
            throw error
        }
        if !reason.isOfRows, let state = reason.sqlState { statesOfRows[state] = .now }
        return outcome
    }

    /// Tries whether even a marker for a lost row can be stored. With a full disk, a locked outbox or a read-only
    /// server it cannot, and no row is to blame.
    private func demandRoom(for batch: CaptureBatch) throws {
        guard let group = batch.groups.first(where: { $0.places.count > 0 }) else { return }
        try connection.runScript("savepoint room")
        try connection.runTogether([lostMarker(0, of: group)], within: Self.limit)
        try connection.runScript("rollback to savepoint room; release savepoint room")
    }

    /// The marker in place of a row that cannot be stored.
    private func lostMarker(_ row: Int, of group: CaptureBatch.Group) -> PreparedCall {
        let marks = group.arrays.prefix(4).map { PreparedCall.Parameter.array($0.copyElements(row..<row + 1)) }
        return PreparedCall("lost", marks + [.text(String(group.shape.relation.description.oid))])
    }

    /// Stores some rows of a group: in halves if Postgres refuses them together, and with more care if it refuses one.
    ///
    /// - Parameter reason: the error at less care.
    private func storeRows(
        _ range: Range<Int>, of group: CaptureBatch.Group, care: StoreCare, _ effort: inout Effort,
        _ outcome: inout Outcome, because reason: PostgresError? = nil
    ) throws {
        var failure: PostgresError
        do {
            try withSavepoint {
                let isWhole = range.count == group.places.count
                let arrays = isWhole ? group.arrays : group.arrays.map { $0.copyElements(range) }
                let call = PreparedCall(try statementName(for: group, care: care), arrays.map { .array($0) })
                try connection.runTogether([call], within: Self.limit)
            }
            if care >= .text, let reason {
                outcome.asTexts += range.count
                try logIncident(
                    range.lowerBound, of: group,
                    "have values that cannot be written as JSON, and are stored with such values as texts", reason)
            }
            return
        } catch let error as PostgresError where isOfRows(error) {
            failure = error
        }
        if effort.mayForget, failure.isOfTables {
            effort.mayForget = false
            try forgetRelation(group.shape.relation)
            return try storeRows(range, of: group, care: care, &effort, &outcome, because: reason)
        }
        effort.failures += 1
        let isStatement = statements[StatementKey(shape: group.shape, care: care)] == nil
        let hasHalves = range.count > 1 && !isStatement && effort.failures <= Self.mostFailures
        if !hasHalves, let next = care.next {
            // The error of a statement that cannot be prepared says nothing about the rows.
            let why = isStatement ? reason : failure
            return try storeRows(range, of: group, care: next, &effort, &outcome, because: why)
        }
        guard range.count == 1 else {
            let middle = range.lowerBound + range.count / 2
            for half in [range.lowerBound..<middle, middle..<range.upperBound] {
                try storeRows(half, of: group, care: care, &effort, &outcome, because: reason)
            }
            return
        }
        // If this fails, too, the row is not the cause, and nothing is skipped.
        try connection.runTogether([lostMarker(range.lowerBound, of: group)], within: Self.limit)
        outcome.lost += 1
        try logIncident(range.lowerBound, of: group, "cannot be stored, and reach nobody", failure)
    }

    /// Runs `body` under a savepoint, so that its failure does not end the transaction.
    private func withSavepoint(_ body: () throws -> Void) throws {
        try connection.runScript("savepoint part")
        do {
            try body()
            try connection.runScript("release savepoint part")
        } catch {
            if !connection.isBroken { try connection.runScript("rollback to savepoint part; release savepoint part") }
            throw error
        }
    }

    /// Logs an incident, once a minute at most for each table.
    private func logIncident(_ row: Int, of group: CaptureBatch.Group, _ what: String, _ reason: PostgresError) throws {
        let relation = group.shape.relation
        let table = try resolveRelation(relation).table ?? "a table that is gone (oid \(relation.description.oid))"
        incidents.log.logWarning(
            "Changes of \(table) that were read from the WAL \(what); one is of the row \(group.keyText(of: row)): "
                + reason.message, about: "\(table) \(what)")
    }

    // MARK: Statements

    /// The name of the statement that stores rows of a group as long as none is refused.
    private func usualName(for group: CaptureBatch.Group, care least: StoreCare) throws -> String {
        var care = max(least, usualCare[group.shape] ?? .full)
        while true {
            do {
                let name = try statementName(for: group, care: care)
                if least == .full { usualCare[group.shape] = care }
                return name
            } catch let error as PostgresError where isOfRows(error) {
                guard let next = care.next else { throw error }
                log.debug("A row of a table that was altered is stored as it was read: \(error.message)")
                care = next
            }
        }
    }

    private func statementName(for group: CaptureBatch.Group, care: StoreCare) throws -> String {
        let key = StatementKey(shape: group.shape, care: care)
        if let known = statements[key] { return known }
        let statement = StoreStatement(for: group, try resolveRelation(group.shape.relation), care: care)
        lastName += 1
        let name = "store_\(lastName)"
        try connection.prepareStatement(name, statement.sql, types: statement.parameterTypes)
        statements[key] = name
        return name
    }

    private func resolveRelation(_ relation: CapturedRelation) throws -> ResolvedRelation {
        if let known = relations[ObjectIdentifier(relation)] { return known.resolved }
        var oids = TextArray()
        for type in Set(relation.description.columns.map(\.type)) { oids.append(String(type).utf8) }
        let named = try connection.query(CaptureSQL.describeTypes, [oids.literal])
        var types: [UInt32: String] = [:]
        for row in 0..<named.count {
            if let oid = named.text(row, 0).flatMap({ UInt32($0) }), let name = named.text(row, 1) { types[oid] = name }
        }
        _ = try connection.query(CaptureSQL.refreshTextNeeds)
        let table = try connection.query(CaptureSQL.describeTable, [String(relation.description.oid)])
        let resolved = ResolvedRelation(
            types: types, table: table.count > 0 ? table.text(0, 0) : nil,
            columns: (0..<table.count).compactMap { row in
                table.text(row, 1).map { name in
                    .init(
                        name: Name(name), expression: table.text(row, 2).map { Name($0) },
                        isGenerated: table.flag(row, 3))
                }
            })
        if demandsASCII {
            let described = relation.description.columns.map(\.name.text) + types.values + [resolved.table ?? ""]
            let now = resolved.columns.flatMap { [$0.name.text, $0.expression?.text ?? ""] }
            guard (described + now).allSatisfy({ $0.utf8.allSatisfy { $0 < 0x80 } }) else {
                throw NameBeyondASCII(table: relation.description.oid)
            }
        }
        // The object is retained, so that no other object gets its identity.
        relations[ObjectIdentifier(relation)] = (relation, resolved)
        return resolved
    }

    private func forgetRelation(_ relation: CapturedRelation) throws {
        for (key, name) in statements where key.shape.relation === relation {
            try connection.runScript("deallocate \(name)")
            statements[key] = nil
        }
        usualCare = usualCare.filter { $0.key.relation !== relation }
        relations[ObjectIdentifier(relation)] = nil
    }

    private func forgetAll() throws {
        for name in statements.values { try connection.runScript("deallocate \(name)") }
        (statements, usualCare, relations) = ([:], [:], [:])
    }
}

/// A name that is not ASCII, of a table, column or type, in a session that gets bytes in place of characters.
struct NameBeyondASCII: Error, CustomStringConvertible {
    let table: UInt32

    var description: String {
        "the table with the oid \(table) has names that are not ASCII, and its rows are read again by their characters"
    }
}

/// Warnings about rows, limited to one a minute over all sessions. Confined to the capture's thread.
final class CaptureIncidents {
    fileprivate var log: RateLimitedLog

    init(logger: Logger) { log = RateLimitedLog(logger: logger) }
}

extension PostgresError {
    /// Whether a row that the server refused, or the statement made for it, may be the cause. Not if another hub stores
    /// by now (RS001), the server is out of resources or shutting down (classes 53, 57, 58), the session may not write
    /// (25), or a retry helps (40, 55): the batch is then stored later, as it is, unless retries fail for long
    /// (`RepeatedRefusal`).
    fileprivate var isOfRows: Bool {
        guard kind == .server, let state = sqlState else { return false }
        // Out of memory, or cancelled: one row may take more than there is.
        if state == "53200" || state == SQLState.queryCanceled { return true }
        return !["08", "25", "28", "40", "53", "55", "57", "58", "RS"].contains { state.hasPrefix($0) }
    }

    /// RS001: another hub has stored what comes next in the slot.
    var isOfAnotherLeader: Bool { sqlState?.hasPrefix("RS") == true }

    /// Class 42: a table, column, type or function changed or is gone. 0A000: a prepared statement's types changed.
    fileprivate var isOfTables: Bool {
        guard let state = sqlState else { return false }
        return state.hasPrefix("42") || state == "0A000" || state == SQLState.internalError
    }
}

extension CaptureBatch.Group {
    /// The replica identity's values for a log line, from the version that is present.
    fileprivate func keyText(of row: Int) -> String {
        let names = shape.relation.description.columns
        let old = shape.versions.old.map { Array($0.enumerated()) } ?? []
        let present =
            newColumns.isEmpty
            ? old.map { (place: $1, column: newColumns.count + $0) }
            : newColumns.enumerated().map { (place: $1, column: $0) }
        let texts = present.filter { names[$0.place].isIdentity }.prefix(8).map { place, column in
            "\(names[place].name) = \((columns[column].text(at: row) ?? "null").prefix(64))"
        }
        return texts.isEmpty ? "(without a key)" : texts.joined(separator: ", ")
    }
}
