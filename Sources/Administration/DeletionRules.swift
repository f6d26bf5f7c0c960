import Postgres

/// Exceptions from the rule that a DELETE is visible as its row was, in the words of `roost watch` and `roost doctor`.
enum DeletionRules {
    /// Findings about tables that are read from the WAL without the whole old row.
    ///
    /// - Parameter table: the only table to examine; nil for all.
    /// - Throws: `PostgresError`.
    static func exceptionFindings(of table: NamedTable?, on connection: PostgresConnection) throws -> [String] {
        let rows = try connection.query(CaptureDoctorSQL.unjudgedDeletions, [table?.oid])
        return (0..<rows.count).map { row in
            let name = rows.text(row, 0) ?? ""
            let remedy =
                "run `alter table \(name) replica identity full` to have them told to all who could see the row, and to no others."
            return rows.flag(row, 1)
                ? "Of a deleted row of \(name) the WAL has its key alone, so policies cannot be asked: the key, which by itself means "
                    + "nothing, goes to everybody whose role may SELECT from \(name), and a filter on other columns finds no "
                    + "DELETE; \(remedy)"
                : "Of a deleted row of \(name) the WAL has the replica identity alone, so nobody hears of it but those whom policies "
                    + "show it by these columns, and a filter on other columns finds no DELETE; \(remedy)"
        }
    }

    /// Tables whose deleted rows cannot be restored while policies are evaluated (SchemaVisibility.sql).
    static func lastingDeletionFindings(on connection: PostgresConnection) throws -> [String] {
        let rows = try connection.query(DoctorSQL.lastingDeletions)
        return (0..<rows.count).map { row in
            let name = rows.text(row, 0) ?? ""
            let way = rows.flag(row, 1) ? "it is partitioned" : "the owner of roost.revive does not own it"
            let remedy =
                rows.flag(row, 1)
                ? "members tables that are not partitioned have no such limit."
                : "have its owner run `grant \(rows.text(row, 2) ?? "") to \(rows.text(row, 3) ?? "")`, or run `roost migrate` as a role that "
                    + "owns it from the beginning."
            return
                "Rows that are deleted together with rows of \(name) are not told to those whom only these let see them, as policies "
                + "are asked afterwards and \(way); \(remedy)"
        }
    }
}
