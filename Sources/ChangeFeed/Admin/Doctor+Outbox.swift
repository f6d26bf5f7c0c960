import Postgres

/// Whether the outbox stays small, and whether all that is in it can be delivered.
extension Doctor {
    static func outbox(
        _ connection: PostgresConnection, _ hub: ExaminedHub, _ limits: DoctorLimits
    ) throws -> [Finding] {
        let state = try connection.query(SQL.outboxState)
        let (living, dead) = (state.integer(0, 0) ?? 0, state.integer(0, 1) ?? 0)
        let size = Magnitude.bytes(state.integer(0, 2) ?? 0)
        let age = state.integer(0, 3).map { Duration.seconds($0) }
        var findings: [Finding] = []
        if let age, age > hub.retention + limits.pruning {
            findings.append(
                Finding(
                    .warning, "outbox",
                    "The oldest change in the outbox is \(Magnitude.time(age)) old, though feed.retention_hours is "
                        + "\(hub.retention.components.seconds / 3600): changes are deleted by a hub that runs; start "
                        + "one, or see in its log why it cannot."))
        }
        if dead > max(Int64(limits.deadRows), living) {
            findings.append(
                Finding(
                    .warning, "outbox",
                    "The outbox has \(dead) dead rows beside \(living) living ones (\(size)): vacuum does not get to "
                        + "it, or an old transaction holds it back; end that, and run `vacuum roost.change`."))
        }
        findings += autovacuum(isOn: state.flag(0, 4), isOffForTable: state.flag(0, 5))
        if findings.isEmpty {
            let oldest = age.map { ", the oldest \(Magnitude.time($0)) old" } ?? ""
            findings.append(Finding(.good, "outbox", "The outbox has about \(living) changes (\(size))\(oldest)."))
        }
        return findings + (try unwatched(connection))
    }

    private static func autovacuum(isOn: Bool, isOffForTable: Bool) -> [Finding] {
        guard isOn, !isOffForTable else {
            let remedy =
                isOn ? "run `alter table roost.change reset (autovacuum_enabled)`" : "set autovacuum = on"
            return [
                Finding(
                    .warning, "outbox",
                    "Autovacuum does not look after the outbox, which grows and slows down with what was deleted; "
                        + "\(remedy).")
            ]
        }
        return []
    }

    private static func unwatched(_ connection: PostgresConnection) throws -> [Finding] {
        let rows = try connection.query(SQL.unwatchedChanges)
        return (0..<rows.count).map { row in
            guard let table = rows.text(row, 1) else {
                return Finding(
                    .warning, "outbox",
                    "The outbox has recent changes of a table that is gone (oid \(rows.text(row, 0) ?? "unknown")); "
                        + "if it was made anew, as a restore does, run `roost watch` for the new one.")
            }
            return Finding(
                .warning, "outbox",
                "\(table) was watched a short while ago and has no triggers of roost's now; if nobody meant that, run "
                    + "`roost watch \(table)`.")
        }
    }
}
