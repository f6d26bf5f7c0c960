import CLinux
import Postgres

/// Checks of the server itself.
extension Doctor {
    static func checkPrimary(_ connection: PostgresConnection) throws -> [Finding] {
        do {
            try Primary.demandPrimary(on: connection)
        } catch let error as PostgresError where error.sqlState == nil && !connection.isBroken {
            return [Finding(.error, "primary", error.message)]
        }
        return [Finding(.good, "primary", "The server takes writes.")]
    }

    static func checkConnections(_ connection: PostgresConnection, _ hub: ExaminedHub) throws -> [Finding] {
        let row = try connection.query(DoctorSQL.connections)
        let limits = [
            ("max_connections", row.integer(0, 0)), ("the role's limit", row.integer(0, 1)),
            ("the database's limit", row.integer(0, 2)),
        ]
        let tightest = limits.compactMap { name, free in free.map { (name, $0) } }.min { $0.1 < $1.1 }
        guard let (name, free) = tightest else { return [] }
        // A running hub already has most of its sessions.
        let needed = row.flag(0, 4) ? 2 : hub.sessions
        guard free < Int64(needed) else {
            return [
                Finding(.good, "connections", "\(free) sessions are free, of which a hub takes up to \(hub.sessions).")
            ]
        }
        return [
            Finding(
                .warning, "connections",
                "\(max(0, free)) sessions are free under \(name), and a hub takes up to \(hub.sessions): without them "
                    + "changes, policies or presence wait; raise the limit, or have the application use a pooler.")
        ]
    }

    static func checkTransactions(_ connection: PostgresConnection, _ limits: DoctorLimits) throws -> [Finding] {
        let rows = try connection.query(DoctorSQL.longTransactions, [String(limits.transaction.components.seconds)])
        guard rows.count > 0 else {
            return [Finding(.good, "transactions", "No transaction is open for long.")]
        }
        let others = rows.count > 1 ? " (one of \(rows.count))" : ""
        return [
            Finding(
                .warning, "transactions",
                "\(rows.text(0, 0) ?? "A session") has a transaction open since "
                    + "\(rows.text(0, 1) ?? "long ago")\(others), which keeps vacuum from cleaning up the outbox and "
                    + "everything else; if nobody needs it, run `\(rows.text(0, 2) ?? "")`.")
        ]
    }

    /// A full queue fails the commits of all sessions that notify. Roost's triggers stop notifying before that; the
    /// application's own NOTIFYs do not.
    static func checkNotificationQueue(_ connection: PostgresConnection) throws -> [Finding] {
        let row = try connection.query(DoctorSQL.notificationQueue)
        let usage = row.text(0, 0).flatMap { Double($0) } ?? 0
        guard usage > 0.1 else { return [Finding(.good, "queue", "The queue of notifications is next to empty.")] }
        let suspect = row.text(0, 1).map { "probably \($0), which select pg_terminate_backend(…) ends" }
        return [
            Finding(
                usage > 0.5 ? .error : .warning, "queue",
                "The queue of notifications is \(Int(usage * 100)) % full, and commits that notify fail when it is "
                    + "full; a listening session that makes no progress holds it up: "
                    + (suspect ?? "look in pg_stat_activity for the oldest xact_start") + ".")
        ]
    }
}

/// Checks of the server's standbys and idle slots.
extension Doctor {
    /// A promoted standby keeps what it has received; the rest is lost.
    static func checkStandbys(_ connection: PostgresConnection, _ limits: DoctorLimits) throws -> [Finding] {
        let rows = try connection.query(DoctorSQL.standbys)
        return (0..<rows.count).map { row in
            let name = rows.text(row, 0) ?? "A standby"
            guard let bytes = rows.integer(row, 1) else {
                return Finding(
                    .good, "standbys",
                    "\(name) follows; only roles with pg_read_all_stats can see how far behind it is.")
            }
            let behind = Duration.seconds(rows.text(row, 2).flatMap { Double($0) } ?? 0)
            let extent = "\(Magnitude.bytes(bytes)) and \(Magnitude.time(behind)) behind"
            guard bytes > Int64(limits.walBytes) || behind > limits.standby else {
                return Finding(.good, "standbys", "\(name) follows, \(extent).")
            }
            return Finding(
                .warning, "standbys",
                "\(name) is \(extent): if it is promoted now, the changes that it lacks are lost with the primary; "
                    + "check its disk, its network, and queries on it that hold replay back.")
        }
    }

    static func checkIdleSlots(_ connection: PostgresConnection, _ limits: DoctorLimits) throws -> [Finding] {
        let rows = try connection.query(DoctorSQL.idleSlots, [String(limits.walBytes)])
        return (0..<rows.count).map { row in
            Finding(
                .warning, "slots",
                "Nobody reads the replication slot \(rows.text(row, 0) ?? ""), which keeps "
                    + "\(Magnitude.bytes(rows.integer(row, 2) ?? 0)) of WAL until Postgres' disk is full; if its "
                    + "reader does not come back (another Realtime may have left it behind), run `select "
                    + "pg_drop_replication_slot(\(rows.text(row, 1) ?? "…"))`.")
        }
    }
}

/// Checks that need no database.
extension Doctor {
    /// Checks whether this machine's clock is synchronized; nil if unknown.
    package static func checkMachineClock() -> Finding? {
        switch roost_clock_is_kept() {
        case 1: Finding(.good, "clock", "This machine's clock is synchronised.")
        case 0:
            Finding(
                .warning, "clock",
                "No time synchronisation is running on this machine, and tokens expire by its clock; run "
                    + "systemd-timesyncd or chrony.")
        default: nil
        }
    }
}
