import Postgres

/// Adds triggers to a table and its partitions, or removes them.
struct TriggerChange {
    /// Lists (member, statement) pairs for a table's oid (`$1`), until nothing is left to do.
    let plan: WatchingSQL
    let turns: TableTurns
    /// The statements that end each member's transaction.
    var closing: [String] = []

    /// Uses one transaction per member, so that no write waits longer than one table takes.
    ///
    /// - Returns: the members that were changed.
    /// - Throws: `AdminError` if a member is in use for longer than the patience lasts; the members before it stay
    ///   changed.
    func applySteps(to table: NamedTable) throws -> [String] {
        var changed: [String] = []
        while case let steps = try remainingSteps(for: table), let member = steps.first?.member {
            let members = Set(steps.map(\.member)).count
            if members + changed.count > 1 {
                turns.reporter.reportProgress { ($0.done, $0.total) = (changed.count, changed.count + members) }
            }
            try turns.changeTable(member) {
                let steps = try self.remainingSteps(for: table).filter { $0.member == member }.map(\.statement)
                return steps.isEmpty ? [] : steps + closing
            }
            changed.append(member)
        }
        return changed
    }

    /// All remaining steps.
    func remainingSteps(for table: NamedTable) throws -> [(member: String, statement: String)] {
        let rows = try turns.connection.query(plan, [table.oid])
        return (0..<rows.count).compactMap { row in
            rows.text(row, 0).flatMap { member in rows.text(row, 1).map { (member, $0) } }
        }
    }
}
