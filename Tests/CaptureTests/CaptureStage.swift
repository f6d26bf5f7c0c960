import Capture
import Logging
import Postgres
import Testing

@testable import PostgresFixtures

/// One Postgres serves all suites, one test after the other.
@Suite(.serialized) struct CaptureTests {}

/// A database whose tables are read from the WAL, and what a capture stored of them.
struct CaptureStage {
    static let cluster = PostgresCluster(
        settings: """
            wal_level = logical
            max_replication_slots = 60
            max_prepared_transactions = 5
            """)

    /// A row of the outbox.
    struct Stored: Equatable {
        let id: Int64
        let operation: String
        let record: String?
        let old: String?
        let isReduced: Bool
        /// What the JSON does not keep, of the row and of the old one.
        let texts: [String?]
    }

    let database: Database

    /// - Parameters:
    ///   - tables: SQL that makes them.
    ///   - reading: which are read from the WAL.
    ///   - triggers: which have triggers.
    init(_ tables: String, reading: String..., triggers: String...) throws {
        database = try Self.cluster.migratedDatabase().prepared(tables)
        for table in triggers { _ = try database.also("", watching: table) }
        // Without it, Postgres 18 refuses updates of a table with generated columns and REPLICA IDENTITY FULL.
        let more = try database.serverVersion() >= 180_000 ? ", publish_generated_columns = stored" : ""
        try database.run(
            """
            create publication roost for table \(reading.joined(separator: ", "))
            with (publish_via_partition_root = true\(more))
            """)
    }

    /// Runs a capture beside `body`.
    func capturing(
        silence: Duration = .seconds(6), notes: Notes? = nil, until state: CaptureReport.State = .leading,
        _ body: (WALCapture) throws -> Void
    ) throws {
        let logger = notes.map { Logger.noting($0) } ?? .silent
        let capture = WALCapture(
            conninfo: database.conninfo, logger: logger, firstRetry: .milliseconds(50), silence: silence,
            interval: .milliseconds(50), patience: .milliseconds(200)
        ) { problem in
            if let problem { notes?.add("problem: \(problem)") }
        }
        capture.start()
        defer { capture.stop() }
        try eventually("a capture that is \(state), and is \(capture.current.state)") {
            capture.current.state == state
        }
        try body(capture)
    }

    /// What the outbox has of a table, in order, once it has as many rows.
    func stored(_ count: Int, of table: String = "t") throws -> [Stored] {
        let session = try database.session()
        var rows: [[String?]] = []
        try eventually("\(count) rows of \(table), not \(rows.count)") {
            rows = try session.queryRows(
                """
                select id, op, record, old_record, reduced, row_text, old_row_text
                from roost.change where relid = $1::regclass order by id
                """, [table])
            return rows.count >= count
        }
        #expect(rows.count == count)
        return rows.map { row in
            Stored(
                id: row[0].flatMap { Int64($0) } ?? 0, operation: row[1] ?? "", record: row[2], old: row[3],
                isReduced: row[4] == "t", texts: [row[5], row[6]])
        }
    }

    /// Waits until all that was committed is stored.
    func settle() throws {
        let session = try database.session()
        let place = try session.queryRows("select pg_current_wal_insert_lsn()").first?.first ?? nil
        try eventually("all to be stored up to \(place ?? "")") {
            try session.queryRows(
                "select from pg_replication_slots where slot_name = roost.slot_name() and confirmed_flush_lsn >= $1::pg_lsn",
                [place]
            ).count == 1
        }
    }
}
