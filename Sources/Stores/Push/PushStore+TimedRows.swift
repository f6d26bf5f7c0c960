import ChangeFeed
import Hub
package import Matching
package import Postgres
package import Wire

/// Rows that are pushed when a time in them has come (`alerts.timed`).
extension PushStore {
    /// Returns a text that differs whenever anything that the statements about tables depend on may have changed.
    package func catalogVersion() throws -> String { try CatalogReader.version(from: connection) }

    /// Returns the tables of columns, in their order (nil if nothing of a column can be pushed), and the problems of each.
    package func timedTables(
        of sources: [TimedSource]
    ) throws -> [(table: TimedTable?, problems: [TimedProblem])] {
        try TimedExamination(connection).examine(sources)
    }

    /// Notes that the rows of a column are pushed from now on, if no hub has done so, and counts those that fell due after a hub's last
    /// look and are too old to be pushed: `life` is in milliseconds.
    ///
    /// - Returns: the count; nil if the condition cannot be evaluated for all of them.
    package func openTimed(_ table: TimedTable, life: Int64) throws -> Int? {
        _ = try connection.query(TimedSQL.openTimedSource, [table.source.name.text])
        do {
            let missed = try connection.query(
                table.filled(.missedTimedRows), [table.source.name.text, String(life)])
            return Int(missed.boundedInteger(0, 0) ?? 0)
        } catch let error as PostgresError where !connection.isBroken && error.kind == .server {
            return nil
        }
    }

    /// Notes that a hub has looked for due rows.
    package func noteLook(at table: TimedTable) throws {
        _ = try connection.query(TimedSQL.noteTimedLook, [table.source.name.text])
    }

    /// Claims the rows that fell due between `oldest` and `youngest` milliseconds ago, the first ones first.
    ///
    /// - Parameter keys: the rows to ask about; nil for all.
    package func takeTimed(
        _ table: TimedTable, from oldest: Int64, to youngest: Int64, limit: Int, keys: [Name]? = nil
    ) throws -> [TimedClaim] {
        let source = table.source.name
        var parameters: [String?] = [
            node, source.text, String(oldest), String(youngest), String(limit), source.text,
        ]
        var statement = table.filled(.takeTimedRows)
        if let keys {
            var list = TextArray()
            for key in keys where !key.utf8.contains(0) { list.append(key.utf8) }
            parameters.append(list.literal)
            statement = table.filled(.takeTimedRows, keys: 7)
        }
        let rows = try connection.query(statement, parameters)
        return (0..<rows.count).compactMap { row in
            guard let key = rows.name(row, 0), let message = rows.name(row, 1), let due = rows.boundedInteger(row, 2)
            else {
                return nil
            }
            return TimedClaim(source: source, key: key, message: message, due: due)
        }
    }

    /// Returns the number of milliseconds until the next row falls due; nil if none does within `period`.
    package func nextTimed(_ table: TimedTable, within period: Int64) throws -> Int64? {
        try connection.query(table.filled(.nextTimedRow), [String(period)]).boundedInteger(0, 0)
    }

    /// Takes over claims of hubs' sessions that have ended.
    package func retakeTimed(_ sources: [TimedSource], limit: Int) throws -> [TimedClaim] {
        var list = TextArray()
        for source in sources { list.append(source.name.utf8) }
        let rows = try connection.query(TimedSQL.retakeTimedRows, [node, list.literal, String(limit)])
        return (0..<rows.count).compactMap { row in
            guard let source = rows.name(row, 0), let key = rows.name(row, 1), let message = rows.name(row, 2),
                let due = rows.boundedInteger(row, 3)
            else { return nil }
            return TimedClaim(source: source, key: key, message: message, due: due)
        }
    }

    /// Reads the rows of claims again: the present state of the table decides.
    ///
    /// One row for which the condition fails, or that has no JSON, must not block the others: the question is split in halves. A
    /// statement that fails regardless of the rows refuses none of them: they wait until it is fixed.
    package func readTimed(_ claims: [TimedClaim], of table: TimedTable) throws -> [TimedReading] {
        var readings = [TimedReading](repeating: .gone, count: claims.count)
        var parts = [claims[...]]
        var isRehearsed = false
        while let part = parts.popLast() {
            guard !part.isEmpty else { continue }
            do {
                try read(part, of: table, into: &readings)
            } catch let error as PostgresError where !connection.isBroken && error.kind == .server {
                let isBroken = try !isRehearsed && !worksWithoutRows(table)
                isRehearsed = true
                if isBroken || error.mayPass || part.count == 1 {
                    warnings.logWarning(
                        "Rows of \(table.source.name) that are due cannot be read (\(error.message)).",
                        about: "read \(table.source.name)")
                    let reading: TimedReading = isBroken || error.mayPass ? .unanswered : .refused
                    for place in part.indices { readings[place] = reading }
                    continue
                }
                let middle = part.startIndex + part.count / 2
                parts += [part[middle...], part[..<middle]]
            }
        }
        return readings
    }

    private func worksWithoutRows(_ table: TimedTable) throws -> Bool {
        do {
            _ = try connection.query(table.filled(.readTimedRows), ["{}"])
            return true
        } catch let error as PostgresError where !connection.isBroken && error.kind == .server {
            return false
        }
    }

    private func read(
        _ part: ArraySlice<TimedClaim>, of table: TimedTable, into readings: inout [TimedReading]
    ) throws {
        var keys = TextArray()
        for claim in part { keys.append(claim.key.utf8) }
        let rows = try connection.query(table.filled(.readTimedRows), [keys.literal])
        for row in 0..<rows.count {
            guard let number = rows.boundedInteger(row, 0) else { continue }
            let place = part.startIndex + Int(number)
            guard part.indices.contains(place) else { continue }
            if rows.boundedInteger(row, 1) != part[place].due {
                readings[place] = .moved
            } else if rows.flag(row, 2) {
                readings[place] = .done
            } else if rows.flag(row, 3) {
                readings[place] = .tooLarge
            } else if let record = rows.bytes(row, 4) {
                readings[place] = .due(
                    RowChange(
                        id: 0, table: table.table, operation: .insert, commitTimestamp: "",
                        committedAtMicroseconds: part[place].due, record: Array(record), oldRecord: nil,
                        text: rows.bytes(row, 5).map { Array($0) }, isReduced: false))
            }
        }
    }

    /// Stores the outcomes of claims.
    package func settleTimed(_ outcomes: [(claim: TimedClaim, outcome: String)]) throws {
        guard !outcomes.isEmpty else { return }
        var columns = [TextArray](repeating: TextArray(), count: 4)
        for (claim, outcome) in outcomes {
            columns[0].append(claim.source.utf8)
            columns[1].append(claim.due)
            columns[2].append(claim.key.utf8)
            columns[3].append(outcome.utf8)
        }
        _ = try connection.query(TimedSQL.settleTimedRows, columns.map(\.literal))
    }

    /// Returns the claims among some messages, which are times of rows.
    package func timedClaims(of messages: some Sequence<Name>) throws -> [TimedClaim] {
        var list = TextArray()
        for message in messages where !message.utf8.contains(0) { list.append(message.utf8) }
        let rows = try connection.query(TimedSQL.timedMessages, [list.literal])
        return (0..<rows.count).compactMap { row in
            guard let message = rows.name(row, 0), let source = rows.name(row, 1), let key = rows.name(row, 2),
                let due = rows.boundedInteger(row, 3)
            else { return nil }
            return TimedClaim(source: source, key: key, message: message, due: due)
        }
    }

    /// Deletes claims of times that no hub looks back to.
    package func pruneTimed(olderThan age: Duration, batch: Int = 1000) throws -> Int {
        let parameters = [String(age.components.seconds), String(batch)]
        return Int(try connection.query(TimedSQL.pruneTimedRows, parameters).boundedInteger(0, 0) ?? 0)
    }
}

extension PostgresError {
    /// Whether the server indicates that the same statement may succeed later: the problem is a lock, a deadline, a resource, or a
    /// server that shuts down.
    package var mayPass: Bool {
        guard kind == .server, let sqlState else { return false }
        return ["25", "40", "53", "55", "57", "58"].contains { sqlState.hasPrefix($0) }
    }
}

/// A row's time that has come, claimed by this hub.
package struct TimedClaim: Sendable, Hashable {
    /// `TimedSource.name`.
    package let source: Name
    /// The row's primary key, as a JSON array.
    package let key: Name
    /// The key of its alerts.
    package let message: Name
    /// In microseconds since 1970.
    package let due: Int64
}

/// The present state of a row whose time has come.
package enum TimedReading: Sendable {
    /// The row is unchanged; this is the row.
    case due(RowChange)
    case gone
    /// The row is due at another time.
    case moved
    /// The condition excludes the row from alerts.
    case done
    case tooLarge
    /// The condition fails for the row, or it has no JSON.
    case refused
    /// A lock or a deadline was in the way.
    case unanswered
}
