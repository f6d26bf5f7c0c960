import Postgres

/// How the changes of a table get into the outbox.
package enum CaptureMethod: String, Sendable {
    /// By triggers, in the writer's transaction. Needs nothing of the server.
    case triggers
    /// By a hub that reads the publication `roost` from the WAL.
    case wal
}

/// Puts tables under a capture, beside whoever writes to them: no change is lost, and none is captured twice.
struct TableCapture {
    let method: CaptureMethod
    let turns: TableTurns
    /// For another session besides that of `turns`.
    let conninfo: String

    /// Has `method` capture the table from now on, and the other one no longer.
    ///
    /// - Throws: `AdminError`.
    func begin(_ table: NamedTable) throws -> Watcher.Outcome {
        let membership = try TableMembership(of: table, on: turns.connection)
        // Faults of before are no part of the change that follows.
        try noteInterruptions()
        var outcome = try change(table, membership)
        // At once, so that nobody who joins from now on is told of it.
        if try noteInterruptions().contains(table.name) {
            outcome.notes.append(
                "\(table.name) was watched before, and not all the time since, so clients connected for row changes are told to "
                    + "load their data again.")
        }
        return outcome
    }

    private func change(_ table: NamedTable, _ membership: TableMembership) throws -> Watcher.Outcome {
        if method == .triggers, let relative = membership.relative {
            throw AdminError(
                "\(table.name) and \(relative) inherit one from the other, and triggers do not follow what is written by way of the "
                    + "other one, so changes would be missing; watch it with ROOST_FEED_CAPTURE=wal.")
        }
        switch method {
        case .triggers where membership.isPublished: return try leaveWAL(table)
        case .triggers:
            return Watcher.Outcome(
                table: table.name,
                changed: try TriggerChange(plan: .watchTable, turns: turns, closing: [Self.keeping(table)])
                    .apply(to: table))
        case .wal:
            guard !membership.isUnlogged else {
                throw AdminError(
                    "\(table.name) is unlogged, wholly or in part, so its changes are not in the WAL; watch it with "
                        + "ROOST_FEED_CAPTURE=triggers, or run `alter table … set logged`.")
            }
            return try enterWAL(table)
        }
    }

    /// Has everybody told who may lack changes, as a capture was interrupted (Migration016Watched.sql).
    ///
    /// - Returns: the tables.
    @discardableResult
    private func noteInterruptions() throws -> [String] {
        let rows = try turns.connection.query(WatchingSQL.noteInterruptions)
        return (0..<rows.count).compactMap { rows.text($0, 0) }
    }

    /// Has nobody capture the table from now on.
    ///
    /// - Throws: `AdminError`.
    func end(_ table: NamedTable) throws -> Watcher.Outcome {
        var outcome = Watcher.Outcome(
            table: table.name, changed: try TriggerChange(plan: .unwatchTable, turns: turns).apply(to: table))
        let retracted = try turns.change(table.name) { try statements(.retractTable, table) }
        if retracted, outcome.changed.isEmpty { outcome.changed = [table.name] }
        try turns.connection.run(Self.keeping(table, isReleased: true))
        try noteInterruptions()
        // Also where an earlier call could not.
        outcome.notes += try LogicalSlot(turns: turns).dropUnread()
        return outcome
    }

    /// The statement that says that the table changed over without a gap; or that nobody is to miss it.
    private static func keeping(_ table: NamedTable, isReleased: Bool = false) -> String {
        "select roost.keep_captures(\(table.oid)::oid, \(isReleased))"
    }

    private func statements(_ plan: PublishingSQL, _ table: NamedTable) throws -> [String] {
        let rows = try turns.connection.query(plan, [table.oid])
        return (0..<rows.count).compactMap { rows.text($0, 0) }
    }
}

extension TableCapture {
    private func enterWAL(_ table: NamedTable) throws -> Watcher.Outcome {
        guard try !statements(.publishTable, table).isEmpty else {
            let isMended = try LogicalSlot(turns: turns).mendPublication()
            return Watcher.Outcome(table: table.name, changed: isMended ? [table.name] : [])
        }
        var outcome = Watcher.Outcome(table: table.name, changed: [table.name])
        let slot = LogicalSlot(turns: turns)
        try slot.whileNobodyDrops {
            try slot.prepare()
            var named: [String] = []
            try turns.change(table.name) {
                let rows = try turns.connection.query(PublishingSQL.publishTable, [table.oid])
                // The last turn, in which nothing is left to do, has none.
                if rows.count > 0 {
                    named = (0..<rows.count).compactMap { rows.flag($0, 2) ? rows.text($0, 1) : nil }
                }
                guard rows.count > 0 else { return [] }
                return (0..<rows.count).compactMap { rows.text($0, 0) } + [Self.keeping(table)]
            }
            outcome.notes += named.map {
                "\($0) has no primary key, so its REPLICA IDENTITY is FULL now: every UPDATE and DELETE writes the whole old "
                    + "row to the WAL. With a primary key and `alter table \($0) replica identity default` it does not."
            }
            outcome.notes += try DeletionRules.exceptions(of: table, on: turns.connection)
        }
        return outcome
    }

    /// The triggers come first, and the table leaves the publication when all that was written before them is stored: else
    /// a row's newer version would be in the outbox before an older one that still is in the slot.
    private func leaveWAL(_ table: NamedTable) throws -> Watcher.Outcome {
        let connection = turns.connection
        guard try awaitReader() else {
            throw AdminError(
                "The changes of \(table.name) in the WAL have to be stored first, but no hub reads them: start a hub "
                    + "with feed.capture: wal, and run this again. If none of them have to be kept, run `roost "
                    + "unwatch` first."
            )
        }
        let second = try AdminSession.open(conninfo)
        let triggers = TriggerChange(plan: .watchTable, turns: turns)
        let closing =
            try statements(.retractTable, table)
            + [Self.keeping(table), "select roost.keep_partitions(\(table.oid)::oid)"]
        // Where the triggers are there already, the lock still makes the cut.
        let lock = "lock table \(table.name) in share row exclusive mode"
        try turns.change(
            table.name, by: { [lock] + (try triggers.steps(for: table).map(\.statement)) }, closing: closing
        ) {
            let place = try connection.query("select pg_current_wal_insert_lsn()").text(0, 0)
            _ = try second.query(PublishingSQL.pushWAL)
            let end = ContinuousClock.now + Self.storingTurn
            while true {
                if try connection.query(PublishingSQL.isStored, [place]).flag(0, 0) { return nil }
                guard ContinuousClock.now < end else { break }
                _ = try connection.query("select pg_sleep(0.02)")
            }
            let behind = try connection.query(PublishingSQL.slotReader).integer(0, 2) ?? 0
            return TableTurns.Obstacle(
                waiting: "waits until a hub has stored what is in the WAL (\(Magnitude.bytes(behind)))",
                reason: "The hub that reads the WAL is \(Magnitude.bytes(behind)) behind; let it catch up")
        }
        return Watcher.Outcome(table: table.name, changed: [table.name])
    }

    /// Waits until a hub reads the slot: one may just have begun, or take over from another.
    ///
    /// - Returns: false where none comes; true also where there is nothing to be read any more.
    private func awaitReader() throws -> Bool {
        let end = ContinuousClock.now + min(turns.patience.total, Self.takeover)
        while true {
            let slot = try turns.connection.query(PublishingSQL.slotReader)
            if slot.count == 0 || !slot.flag(0, 0) || slot.flag(0, 1) { return true }
            guard ContinuousClock.now < end else { return false }
            turns.reporter.report { $0.detail = "waits for a hub that reads the WAL" }
            turns.reporter.pause(.milliseconds(200))
            turns.reporter.report { $0.detail = nil }
        }
    }

    /// Within which a hub reads the WAL if one is there.
    private static let takeover = Duration.seconds(10)

    /// How long writers wait for a hub to store what is in the WAL.
    private static let storingTurn = Duration.milliseconds(1500)
}

/// How a table is captured at present.
struct TableMembership {
    let isPublished: Bool
    /// Wholly or in part: what is written there is not in the WAL.
    let isUnlogged: Bool
    /// A table that it inherits from, or that inherits from it, other than as a partition.
    let relative: String?

    init(of table: NamedTable, on connection: PostgresConnection) throws {
        let row = try connection.query(PublishingSQL.tableMembership, [table.oid])
        isPublished = row.flag(0, 0)
        isUnlogged = row.flag(0, 1)
        relative = row.text(0, 2)
    }
}

/// The publication `roost`, and its slot.
enum PublishingSQL: String, NamedStatement {
    case requirementsOfWAL, publicationState, makePublication, mendPublication, makeSlot, slotReader, isStored, pushWAL,
        tableMembership, publishTable, retractTable
    static let file = StatementFile("Publishing.sql")
}
