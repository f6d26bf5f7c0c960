import Glibc
import Logging
import Postgres

/// The session that stores batches, and with them how far they go. On the capture's thread.
final class CaptureStore {
    let connection: PostgresConnection
    /// What roost.capture says.
    private(set) var position: CapturePosition
    private let log: Logger
    private var relations: [ObjectIdentifier: (relation: CapturedRelation, resolved: ResolvedRelation)] = [:]
    private var statements: [RowShape: Statement] = [:]
    private var lastName = 0

    private struct Statement {
        let name: String
        let care: StoreCare
    }

    /// A batch is at most a few MiB; where storing it takes so long, the session hangs.
    private static let limit = Duration.seconds(20)
    /// More than a hub's tables have; a table that is altered again and again leaves some behind.
    private static let mostStatements = 400

    /// - Parameters:
    ///   - connection: which leads.
    ///   - position: what roost.capture says.
    init(_ connection: PostgresConnection, from position: CapturePosition, log: Logger) throws {
        self.connection = connection
        self.position = position
        self.log = log
        try connection.prepare("begins", CaptureSQL.storeBegins.text)
        try connection.prepare("ends", CaptureSQL.storeEnds.text)
    }

    /// Stores a batch, and that all up to `end` is stored; both or neither.
    ///
    /// - Throws: `PostgresError`; after one of kind `connection` nobody knows whether it is stored, and the stored position
    ///   tells.
    func store(_ batch: CaptureBatch, upTo end: CapturePosition) throws {
        do {
            try store(batch, upTo: end, care: .full)
        } catch let error as PostgresError where error.kind == .server && Self.isOfValues(error) {
            log.warning(
                """
                A value that was read from the WAL no longer fits its type (\(error.message)): rows are stored with \
                such values as texts.
                """)
            try store(batch, upTo: end, care: .text)
        }
        position = end
    }

    /// What has been prepared may be wrong: a table was altered. Prepared anew, it is right.
    private func store(_ batch: CaptureBatch, upTo end: CapturePosition, care: StoreCare) throws {
        if statements.count > Self.mostStatements { try forget() }
        var calls = [
            PreparedCall(
                "begins",
                [
                    .text(position.lsn.description), .text(position.part?.commit.description),
                    .text(String(position.part?.rows ?? 0)), .text(end.lsn.description),
                    .text(end.part?.commit.description), .text(String(end.part?.rows ?? 0)), .text(String(batch.rows)),
                    .text("{\(batch.xids.map { String($0) }.joined(separator: ","))}"),
                ])
        ]
        for group in batch.groups {
            calls.append(PreparedCall(try name(for: group, care: care), group.arrays.map { .array($0) }))
        }
        calls.append(PreparedCall("ends", []))
        do {
            try connection.runTogether(calls, within: Self.limit)
        } catch let error as PostgresError where error.kind == .server && Self.isOfTables(error) && !relations.isEmpty {
            try forget()
            relations = [:]
            try store(batch, upTo: end, care: care)
        }
    }

    /// The name of the prepared statement for a group.
    private func name(for group: CaptureBatch.Group, care least: StoreCare) throws -> String {
        if let known = statements[group.shape], known.care.rawValue >= least.rawValue { return known.name }
        let resolved = try resolved(group.shape.relation)
        var failure: PostgresError?
        for care in StoreCare.allCases where care.rawValue >= least.rawValue {
            let statement = StoreStatement(for: group, resolved, care: care)
            lastName += 1
            let name = "store_\(lastName)"
            do {
                try connection.prepare(name, statement.sql, types: statement.parameterTypes)
                statements[group.shape] = Statement(name: name, care: care)
                return name
            } catch let error as PostgresError where error.kind == .server {
                log.debug("A row of a table that was altered is stored as it was read: \(error.message)")
                failure = error
            }
        }
        throw failure ?? PostgresError(.server, "No statement stores these rows.")
    }

    private func resolved(_ relation: CapturedRelation) throws -> ResolvedRelation {
        if let known = relations[ObjectIdentifier(relation)] { return known.resolved }
        var oids = TextArray()
        for type in Set(relation.description.columns.map(\.type)) { oids.append(String(type).utf8) }
        let named = try connection.query(CaptureSQL.describeTypes, [oids.literal])
        var types: [UInt32: String] = [:]
        for row in 0..<named.count {
            if let oid = named.text(row, 0).flatMap({ UInt32($0) }), let name = named.text(row, 1) { types[oid] = name }
        }
        let table = try connection.query(CaptureSQL.describeTable, [String(relation.description.oid)])
        let resolved = ResolvedRelation(
            types: types, table: table.count > 0 ? table.text(0, 0) : nil,
            columns: (0..<table.count).compactMap { row in
                table.text(row, 1).map { name in
                    .init(name: name, expression: table.text(row, 2), isGenerated: table.flag(row, 3))
                }
            })
        // The object is kept, so that no other has its identity.
        relations[ObjectIdentifier(relation)] = (relation, resolved)
        return resolved
    }

    private func forget() throws {
        for statement in statements.values { try connection.run("deallocate \(statement.name)") }
        statements = [:]
        relations = [:]
    }

    /// Class 42: a table, column, type or function is another one, or gone. 0A000: a prepared statement's types changed.
    private static func isOfTables(_ error: PostgresError) -> Bool {
        guard let state = error.sqlState else { return false }
        return state.hasPrefix("42") || state == "0A000" || state == "XX000"
    }

    /// Class 22: a text that is no value of its type. Class 23: one that a domain does not allow.
    private static func isOfValues(_ error: PostgresError) -> Bool {
        guard let state = error.sqlState else { return false }
        return state.hasPrefix("22") || state.hasPrefix("23") || state.hasPrefix("42")
    }
}
