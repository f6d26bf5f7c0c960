import ChangeFeed
import Matching
package import Postgres
import Wire

/// Checks the columns of `alerts.timed` against the database: for a hub, which leaves out unusable columns, and for `roost doctor`.
package struct TimedExamination {
    private let connection: PostgresConnection

    package init(_ connection: PostgresConnection) { self.connection = connection }

    /// Returns the tables, in the order of the columns, and the problems of each.
    package func examine(_ sources: [TimedSource]) throws -> [(table: TimedTable?, problems: [TimedProblem])] {
        let watched = try CatalogReader.tables(from: connection)
        return try sources.map { source in
            guard let table = watched.first(where: { source.isOf($0.schema, $0.name) }) else {
                return (nil, [unwatched(source)])
            }
            guard let column = table.column(source.column) else {
                return (
                    nil, [TimedProblem("\(source.tableName) has no column \(source.column); correct alerts.timed.")]
                )
            }
            guard TimedTable.isTime(column) else {
                return (
                    nil,
                    [
                        TimedProblem(
                            "\(source.name) is of the type \(column.sqlType), which says no time; name a column of the type "
                                + "timestamptz, timestamp or date.")
                    ]
                )
            }
            guard let timed = TimedTable(source, table) else {
                return (
                    nil,
                    [
                        TimedProblem(
                            "\(source.tableName) has no primary key, by which a row is found again; give it one.")
                    ]
                )
            }
            let problems = try problems(timed)
            return (problems.contains(where: \.isFatal) ? nil : timed, problems)
        }
    }

    private func unwatched(_ source: TimedSource) -> TimedProblem {
        TimedProblem(
            "\(source.tableName) is not watched, so nothing in it is pushed when it is due; run "
                + "`roost watch \(source.tableName)`.")
    }

    private func problems(_ timed: TimedTable) throws -> [TimedProblem] {
        let source = timed.source
        let facts = try connection.query(
            TimedSQL.examineTimedColumn, [source.schema.text, source.table.text, source.column.text])
        guard facts.count > 0, facts.flag(0, 0) else {
            return [
                TimedProblem(
                    "The hub's role may not read \(source.tableName), so nothing in it is pushed when it is due; run "
                        + "`grant select on \(SQLText.name(of: timed.table)) to` that role.")
            ]
        }
        var problems: [TimedProblem] = []
        if facts.flag(0, 1) {
            problems.append(
                TimedProblem(
                    "Row level security applies to the hub's role in \(source.tableName): rows that its policies hide are not "
                        + "pushed when they are due; give the role BYPASSRLS, or a policy for all of them.",
                    isFatal: false))
        }
        if !facts.flag(0, 2) {
            problems.append(
                TimedProblem(
                    "No index serves \(source.name), so the hub reads the whole table each time that it looks, which it then "
                        + "does seldom; run `create index on \(SQLText.name(of: timed.table)) "
                        + "(\(SQLText.identifier(source.column)))`, without a condition.", isFatal: false))
        }
        do {
            _ = try connection.query(timed.filled(.examineTimedCondition))
        } catch let error as PostgresError where error.kind == .server && !connection.isBroken {
            problems.append(
                TimedProblem(
                    "The condition of \(source.name) in alerts.timed does not work, so nothing of it is pushed "
                        + "(\(error.message)); correct it."))
        }
        return problems
    }

    /// Returns the history of a column that a hub has looked at: the seconds since the last look, the number of rows pushed late within
    /// the last day, and the longest delay in seconds.
    package func history(of source: TimedSource) throws -> (silence: Int64, late: Int64, most: Int64)? {
        let rows = try connection.query(TimedSQL.timedHistory, [source.name.text, String(TimedSource.lateAfter)])
        guard rows.count > 0 else { return nil }
        return (rows.boundedInteger(0, 0) ?? 0, rows.boundedInteger(0, 1) ?? 0, rows.boundedInteger(0, 2) ?? 0)
    }
}

extension TimedSource {
    /// The delay after which a row counts as late, in milliseconds.
    package static let lateAfter: Int64 = 10_000
}
