package import Matching
package import Wire

/// The initial rows that a join asks for with `config.rows`, sent before the live changes.
package struct FirstRows: Sendable {
    /// Each entry as the client wrote it, or the error in it.
    package let entries: [Result<RowsRequest, SubscriptionError>]
    /// As policies know it (`realtime.topic`).
    package let topic: Name

    /// The maximum number of entries in one join.
    package static let mostEntries = 10

    /// - Returns: nil if the join asks for none.
    init?(_ config: JoinConfig, in key: ChannelKey, _ limits: HubLimits) {
        guard !config.rows.isEmpty else { return nil }
        var entries = config.rows.prefix(Self.mostEntries).map { entry -> Result<RowsRequest, SubscriptionError> in
            do throws(SubscriptionError) {
                // Copied, because it outlives the frame that it came in.
                let own = JSON(trusted: Array(entry.bytes)[...])
                return .success(try RowsRequest(own, expressions: limits.regularExpressions))
            } catch {
                return .failure(error)
            }
        }
        if config.rows.count > Self.mostEntries {
            let problem = "a join takes at most \(Self.mostEntries) entries of rows; the rest are left out"
            entries.append(.failure(SubscriptionError(problem)))
        }
        self.init(entries: entries, topic: Name(String(key.name)))
    }

    package init(entries: [Result<RowsRequest, SubscriptionError>], topic: Name) {
        self.entries = entries
        self.topic = topic
    }

    /// The entries to read even if the member's cursor brings it all changes; nil if there are none.
    package var fresh: FirstRows? {
        let entries = entries.filter { if case .success(let request) = $0 { request.isFresh } else { false } }
        return entries.isEmpty ? nil : FirstRows(entries: entries, topic: topic)
    }
}

/// The outcome of reading a member's initial rows.
package struct FirstRowsReport: Sendable {
    /// The cursor just after the state that the rows show: later changes follow, or are sent to a client that resumes
    /// there.
    package let cursor: String
    package let tables: [Entry]

    package struct Entry: Sendable {
        package let schema: String
        package let table: String
        package let count: Int
        /// The position of the last row as JSON if more follow, to be used as `after`.
        package let next: [UInt8]?
        /// The reason why there are none.
        package let problem: String?

        package init(schema: String, table: String, count: Int = 0, next: [UInt8]? = nil, problem: String? = nil) {
            self.schema = schema
            self.table = table
            self.count = count
            self.next = next
            self.problem = problem
        }
    }

    package init(cursor: String, tables: [Entry]) {
        self.cursor = cursor
        self.tables = tables
    }
}

extension HubContext {
    /// Tells a member that its initial rows follow.
    mutating func announceRows(to membership: Membership) {
        sendSystemMessage(membership, extension: "rows", ok: true, message: "Rows begin")
    }

    /// Tells a member that all initial rows were sent: how many of each table, where its changes continue, and which
    /// could not be read.
    mutating func reportRows(_ rows: FirstRowsReport, to membership: Membership) {
        for problem in rows.tables.compactMap(\.problem) {
            sendSystemMessage(membership, extension: "rows", ok: false, message: problem)
            reportFailure(JoinFailure(rowChanges: problem), on: membership.slot)
        }
        sendSystemMessage(membership, extension: "rows", ok: true, message: "Rows are there", cursor: rows.cursor) {
            $0.array("rows", rows.tables) { out, entry in
                out.object {
                    $0.writeMember("schema", entry.schema)
                    $0.writeMember("table", entry.table)
                    $0.writeMember("count", entry.count)
                    if let next = entry.next { $0.writeMember("next", json: next) }
                    if let problem = entry.problem { $0.writeMember("error", problem) }
                }
            }
        }
    }
}
