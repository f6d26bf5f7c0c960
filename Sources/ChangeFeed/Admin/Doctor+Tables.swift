import Postgres

/// The watched tables and their triggers.
extension Doctor {
    static func tables(_ connection: PostgresConnection) throws -> [Finding] {
        let count = try CatalogReader.tables(from: connection).count
        let faults = try connection.query(SQL.triggerFaults)
        var findings = (0..<faults.count).compactMap { row -> Finding? in
            guard let table = faults.text(row, 0), let fault = faults.text(row, 1) else { return nil }
            return finding(fault, of: table, concernsItself: faults.flag(row, 2))
        }
        if count > 0 {
            findings.insert(
                Finding(.good, "tables", count == 1 ? "1 table is watched." : "\(count) tables are watched."), at: 0)
        } else if findings.isEmpty {
            findings = [Finding(.warning, "tables", "No table is watched; run `roost watch TABLE`.")]
        }
        return findings
    }

    /// - Parameters:
    ///   - fault: as TriggerFaults.sql names it.
    ///   - concernsItself: whether the table has it, and not its partitions alone.
    private static func finding(_ fault: String, of table: String, concernsItself: Bool) -> Finding {
        let some = concernsItself ? table : "A partition of \(table)"
        return switch fault {
        case "missing":
            Finding(
                .warning, "tables",
                "\(table) lacks some of roost's triggers, as a partition was added, roost was upgraded or somebody "
                    + "dropped them, so some changes reach nobody; run `roost watch \(table)`.")
        case "silent":
            Finding(
                .error, "tables",
                "\(some) has triggers of roost's that are disabled, so its changes reach nobody; run `roost watch "
                    + "\(table)`, which enables them, or `roost unwatch \(table)`.")
        case "foreign":
            Finding(
                .error, "tables",
                "\(some) has triggers of roost's that are not as this version makes them; run `roost watch \(table)`, "
                    + "which makes them anew.")
        default:
            Finding(
                .warning, "tables",
                "\(some) has one of roost's triggers twice, so changes are told twice; run `roost unwatch \(table)` "
                    + "and `roost watch \(table)`, at a moment when nobody writes.")
        }
    }
}
