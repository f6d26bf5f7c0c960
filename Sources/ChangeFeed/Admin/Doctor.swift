import CPostgres
import Foundation
import Postgres

/// Looks at a database as a hub would use it.
package enum Doctor {
    typealias Check = (PostgresConnection) throws -> [Finding]

    /// Never throws: what fails is a finding.
    package static func examine(
        conninfo: String, for hub: ExaminedHub = ExaminedHub(), limits: DoctorLimits = DoctorLimits()
    ) -> [Finding] {
        let connection: PostgresConnection
        do {
            connection = try AdminSession.open(conninfo)
        } catch let error as PostgresError where error.isOfPooler {
            return [Finding(.error, "pooler", error.message + ".")]
        } catch {
            return [Finding(.error, "postgres", "Postgres cannot be reached (\(error)); check ROOST_DATABASE_URL.")]
        }
        var findings = [Finding(.good, "postgres", "Postgres can be reached.")]
        run([
            ("version", version), ("primary", primary), ("listen", listen), ("clock", clock),
            ("connections", { try connections($0, hub) }), ("transactions", { try transactions($0, limits) }),
            ("queue", queue), ("standbys", { try standbys($0, limits) }), ("slots", { try slots($0, limits) }),
            ("schema", schema),
        ])
        // What rests on the schema cannot be asked where it is missing, of another version or out of reach.
        guard findings.contains(where: { $0.subject == "schema" && $0.severity == .good }) else { return findings }
        run([("rights", rights)])
        if !findings.contains(where: { $0.subject == "rights" && $0.severity == .error }) {
            run([("hubs", { try hubs($0, hub) }), ("outbox", { try outbox($0, hub, limits) })])
        }
        run([
            ("tables", tables), ("writers", writers), ("realtime", realtime), ("roles", roles), ("policies", policies),
            ("scope", scopes),
        ])
        return findings

        func run(_ checks: [(String, Check)]) {
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
        return [Finding(.good, "schema", "The schema roost is version \(Migrator.currentVersion).")]
    }

    private static func rights(_ connection: PostgresConnection) throws -> [Finding] {
        let missing = try connection.query(SQL.rights)
        guard missing.count > 0 else { return [Finding(.good, "rights", "This role may do what the hub does.")] }
        return (0..<missing.count).map {
            Finding(
                .error, "rights", "This role lacks \(missing.text($0, 0) ?? ""); grant it, or connect as the owner.")
        }
    }
}
