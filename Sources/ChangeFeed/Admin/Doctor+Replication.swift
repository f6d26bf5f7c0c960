import Postgres

/// What follows the server, or once did.
extension Doctor {
    /// A standby that is promoted takes along what it has, and the rest is lost.
    static func standbys(_ connection: PostgresConnection, _ limits: DoctorLimits) throws -> [Finding] {
        let rows = try connection.query(SQL.standbys)
        return (0..<rows.count).map { row in
            let name = rows.text(row, 0) ?? "A standby"
            guard let bytes = rows.integer(row, 1) else {
                return Finding(
                    .good, "standbys",
                    "\(name) follows; how far behind it is, only roles with pg_read_all_stats are told.")
            }
            let behind = Duration.seconds(rows.text(row, 2).flatMap { Double($0) } ?? 0)
            let extent = "\(Magnitude.bytes(bytes)) and \(Magnitude.time(behind)) behind"
            guard bytes > Int64(limits.walBytes) || behind > limits.standby else {
                return Finding(.good, "standbys", "\(name) follows, \(extent).")
            }
            return Finding(
                .warning, "standbys",
                "\(name) is \(extent): if it is promoted now, the changes that it lacks are lost with the primary; "
                    + "see to its disk, its network, and queries on it that hold replay back.")
        }
    }

    static func slots(_ connection: PostgresConnection, _ limits: DoctorLimits) throws -> [Finding] {
        let rows = try connection.query(SQL.idleSlots, [String(limits.walBytes)])
        return (0..<rows.count).map { row in
            Finding(
                .warning, "slots",
                "Nobody reads the replication slot \(rows.text(row, 0) ?? ""), which keeps "
                    + "\(Magnitude.bytes(rows.integer(row, 2) ?? 0)) of WAL until Postgres' disk is full; if nothing "
                    + "comes back to it, as to one that another Realtime left behind, run `select "
                    + "pg_drop_replication_slot(\(rows.text(row, 1) ?? "…"))`.")
        }
    }
}
