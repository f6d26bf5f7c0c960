import CPostgres
import Foundation

/// What a check found.
package struct Finding: Sendable, Equatable {
    package enum Severity: String, Sendable { case good, warning, error }

    package let severity: Severity
    package let subject: String
    /// One sentence; where something is wrong, it says what to do.
    package let message: String

    package init(_ severity: Severity, _ subject: String, _ message: String) {
        self.severity = severity
        self.subject = subject
        self.message = message
    }
}

/// Looks at a database as a hub would use it.
package enum Doctor {
    /// Never throws: what fails is a finding.
    package static func examine(conninfo: String) -> [Finding] {
        let connection: PostgresConnection
        do {
            connection = try AdminSession.open(conninfo)
        } catch {
            return [Finding(.error, "postgres", "Postgres cannot be reached (\(error)); check ROOST_DATABASE_URL.")]
        }
        var findings = [Finding(.good, "postgres", "Postgres can be reached.")]
        let checks: [(String, (PostgresConnection) throws -> [Finding])] = [
            ("version", version), ("primary", primary), ("listen", listen), ("clock", clock), ("queue", queue),
            ("schema", schema),
        ]
        let checksOfSchema: [(String, (PostgresConnection) throws -> [Finding])] = [
            ("realtime", realtime), ("roles", roles), ("policies", policies), ("scope", scopes),
        ]
        run(checks)
        // What rests on the schema cannot be asked where it is missing, of another version or out of reach.
        if findings.contains(where: { $0.subject == "schema" && $0.severity == .good }) { run(checksOfSchema) }
        return findings

        func run(_ checks: [(String, (PostgresConnection) throws -> [Finding])]) {
            for (subject, check) in checks {
                do {
                    findings += try check(connection)
                } catch {
                    findings.append(Finding(.error, subject, "The check failed: \(error)."))
                }
            }
        }
    }

    private static func version(_ connection: PostgresConnection) -> [Finding] {
        let major = connection.serverVersion / 10_000
        return major >= 13
            ? [Finding(.good, "version", "Postgres \(major) is supported.")]
            : [Finding(.error, "version", "Postgres \(major) is too old; roost needs 13 or newer.")]
    }

    /// A transaction pooler gives every transaction another session, which loses LISTEN.
    private static func listen(_ connection: PostgresConnection) throws -> [Finding] {
        try connection.run("listen roost_doctor")
        let first = try connection.query("select pg_backend_pid()").text(0, 0)
        try connection.run("notify roost_doctor")
        let second = try connection.query("select pg_backend_pid()").text(0, 0)
        let deadline = ContinuousClock.now + .seconds(2)
        var heard = try connection.takeNotifications()
        while heard == 0, ContinuousClock.now < deadline {
            // The ring comes at the latest with the answer to the next statement.
            _ = try connection.query("select pg_sleep(0.02)")
            heard = try connection.takeNotifications()
        }
        try connection.run("unlisten roost_doctor")
        return first == second && heard > 0
            ? [Finding(.good, "listen", "LISTEN works on this connection.")]
            : [
                Finding(
                    .error, "listen",
                    "LISTEN does not work here, as behind a transaction pooler; connect to Postgres directly."
                )
            ]
    }

    private static func clock(_ connection: PostgresConnection) throws -> [Finding] {
        let before = Date().timeIntervalSince1970
        let text = try connection.query("select extract(epoch from clock_timestamp())::float8").text(0, 0) ?? ""
        let after = Date().timeIntervalSince1970
        guard let theirs = Double(text) else { return [] }
        let skew = max(0, before - theirs, theirs - after)
        let shown = String(format: "%.1f", skew)
        return skew <= 1
            ? [Finding(.good, "clock", "The clocks here and at the database agree.")]
            : [Finding(.warning, "clock", "The clocks here and there differ by \(shown) s; run NTP on both.")]
    }

    private static func schema(_ connection: PostgresConnection) throws -> [Finding] {
        do {
            try Migrator.demandCurrentSchema(on: connection)
        } catch let error as PostgresError where error.sqlState == SQLState.insufficientPrivilege {
            return [Finding(.error, "rights", "\(error.message); grant USAGE on schema roost, or use its owner.")]
        } catch let error as PostgresError where error.kind == .server {
            return [Finding(.error, "schema", error.message)]
        }
        var findings = [Finding(.good, "schema", "The schema roost is version \(Migrator.currentVersion).")]
        let missing = try connection.query(SQL.rights)
        findings += (0..<missing.count).map {
            Finding(
                .error, "rights", "This role lacks \(missing.text($0, 0) ?? ""); grant it, or connect as the owner.")
        }
        if missing.count == 0 { findings.append(Finding(.good, "rights", "This role may do what the hub does.")) }
        return try findings + watched(connection)
    }

    private static func watched(_ connection: PostgresConnection) throws -> [Finding] {
        let tables = try CatalogReader.tables(from: connection)
        guard !tables.isEmpty else {
            return [Finding(.warning, "tables", "No table is watched; run `roost watch TABLE`.")]
        }
        let partial = try tables.filter { try connection.query(SQL.watchTable, [String($0.oid)]).count > 0 }
        return [Finding(.good, "tables", "\(tables.count) tables are watched.")]
            + partial.map {
                Finding(
                    .warning, "tables",
                    "\($0.schema).\($0.name) lacks some of roost's triggers, as a partition was added or roost was upgraded; "
                        + "run `roost watch` for it again.")
            }
    }
}
