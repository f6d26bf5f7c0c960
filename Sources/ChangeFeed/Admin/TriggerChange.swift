import Postgres

/// Puts triggers on a table and its partitions, or takes them off, beside whoever uses the table.
struct TriggerChange {
    /// Lists (member, statement) pairs for a table's oid (`$1`), until nothing is left to do.
    let plan: String
    let connection: PostgresConnection
    let patience: LockPatience
    let teller: AdminTeller

    /// How often a trigger's name may be taken: once by somebody who does the same at the same time.
    private static let mostClashes = 3

    /// - Throws: `AdminError` where a member is in use for longer than the patience lasts; those before it stay
    ///   changed.
    func apply(to table: NamedTable) throws -> Watcher.Outcome {
        var changed: [String] = []
        while case let rows = try connection.query(plan, [table.oid]), rows.count > 0 {
            let member = rows.text(0, 0) ?? table.name
            let members = Set((0..<rows.count).compactMap { rows.text($0, 0) }).count
            if members + changed.count > 1 {
                teller.tell { ($0.done, $0.total) = (changed.count, changed.count + members) }
            }
            try change(member, of: table)
            changed.append(member)
        }
        return Watcher.Outcome(table: table.name, changed: changed)
    }

    /// One transaction per member: nobody's writes wait longer than one table takes.
    private func change(_ member: String, of table: NamedTable) throws {
        var wait = LockWait(patience)
        var clashes = 0
        while case let statements = try statements(for: member, of: table), !statements.isEmpty {
            let script = ["begin", "set local lock_timeout = '\(patience.turnText)'"] + statements + ["commit"]
            do {
                try connection.run(script.joined(separator: "; "), within: .seconds(30))
                return
            } catch let error as PostgresError where error.kind == .server {
                try connection.run("rollback")
                switch error.sqlState {
                case SQLState.lockNotAvailable:
                    try rest(&wait, for: member, readersCount: statements.contains { $0.hasPrefix("drop ") })
                case SQLState.duplicateObject where clashes < Self.mostClashes: clashes += 1
                case SQLState.duplicateObject:
                    throw AdminError("\(error.message), and it is not roost's; rename it, and run this again.")
                default: throw error
                }
            }
        }
    }

    private func statements(for member: String, of table: NamedTable) throws -> [String] {
        let rows = try connection.query(plan, [table.oid])
        return (0..<rows.count).filter { rows.text($0, 0) == member }.compactMap { rows.text($0, 1) }
    }

    /// - Throws: `AdminError` where the patience is over.
    private func rest(_ wait: inout LockWait, for member: String, readersCount: Bool) throws {
        let oid = try connection.query("select to_regclass($1)::oid", [member]).text(0, 0)
        let holder = try LockHolder(of: oid, readersCount: readersCount, on: connection)
        guard let pause = wait.next(at: .now) else {
            throw AdminError(
                "\(member) is in use by \(holder?.description ?? "many short transactions"); "
                    + "\(holder?.remedy ?? "choose a quieter moment"), and run this again (--wait SECONDS tries for "
                    + "longer).")
        }
        teller.tell { $0.detail = "waits for a lock of \(holder?.description ?? "short transactions")" }
        teller.pause(pause)
        teller.tell { $0.detail = nil }
    }
}
