import Postgres

/// The way of a table's changes to the outbox.
package enum CaptureMethod: String, Sendable {
    /// By triggers, in the writer's transaction. Needs nothing from the server.
    case triggers
    /// By a hub that reads the publication `roost` from the WAL.
    case wal
}

/// Puts tables under a capture while others write to them: no change is lost or captured twice.
struct TableCapture {
    let method: CaptureMethod
    let turns: TableTurns
    /// For a second session.
    let conninfo: String

    /// Starts capturing the table by `method`, and ends the other method.
    ///
    /// - Throws: `AdminError`.
    func startCapture(_ table: NamedTable) throws -> Watcher.Outcome {
        let membership = try TableMembership(of: table, on: turns.connection)
        // Earlier faults have nothing to do with the change that follows.
        try noteInterruptions()
        var outcome = try changeCapture(table, membership)
        // At once, so that clients that join later are not told.
        if try noteInterruptions().contains(table.name) {
            outcome.notes.append(
                "\(table.name) was watched before, and not all the time since, so clients connected for row changes are told to "
                    + "load their data again.")
        }
        return outcome
    }

    private func changeCapture(_ table: NamedTable, _ membership: TableMembership) throws -> Watcher.Outcome {
        if method == .triggers, let relative = membership.relative {
            throw AdminError(
                "\(table.name) and \(relative) inherit one from the other, and triggers do not follow what is written by way of the "
                    + "other one, so changes would be missing; watch it with ROOST_FEED_CAPTURE=wal.")
        }
        switch method {
        case .triggers where membership.isPublished: return try changeToTriggers(table)
        case .triggers:
            return Watcher.Outcome(
                table: table.name,
                changed: try TriggerChange(plan: .watchTable, turns: turns, closing: [Self.keepStatement(table)])
                    .applySteps(to: table))
        case .wal:
            guard !membership.isUnlogged else {
                throw AdminError(
                    "\(table.name) is unlogged, wholly or in part, so its changes are not in the WAL; watch it with "
                        + "ROOST_FEED_CAPTURE=triggers, or run `alter table … set logged`.")
            }
            return try changeToWAL(table)
        }
    }

    /// Notifies the clients that may lack changes because a capture was interrupted (SchemaCapture.sql).
    ///
    /// - Returns: the affected tables.
    @discardableResult
    private func noteInterruptions() throws -> [String] {
        let rows = try turns.connection.query(WatchingSQL.noteInterruptions)
        return (0..<rows.count).compactMap { rows.text($0, 0) }
    }

    /// Ends the capture of the table.
    ///
    /// - Throws: `AdminError`.
    func endCapture(_ table: NamedTable) throws -> Watcher.Outcome {
        var outcome = Watcher.Outcome(
            table: table.name, changed: try TriggerChange(plan: .unwatchTable, turns: turns).applySteps(to: table))
        let retracted = try turns.changeTable(table.name) { try planStatements(.retractTable, table) }
        if retracted, outcome.changed.isEmpty { outcome.changed = [table.name] }
        try turns.connection.runScript(Self.keepStatement(table, isReleased: true))
        try noteInterruptions()
        // Also if an earlier call could not.
        outcome.notes += try LogicalSlot(turns: turns).dropUnread()
        return outcome
    }

    /// The statement that records a change of capture without a gap, or, if `isReleased`, that the table's changes need
    /// not be captured any more.
    private static func keepStatement(_ table: NamedTable, isReleased: Bool = false) -> String {
        "select roost.keep_captures(\(table.oid)::oid, \(isReleased))"
    }

    private func planStatements(_ plan: PublishingSQL, _ table: NamedTable) throws -> [String] {
        let rows = try turns.connection.query(plan, [table.oid])
        return (0..<rows.count).compactMap { rows.text($0, 0) }
    }
}

extension TableCapture {
    private func changeToWAL(_ table: NamedTable) throws -> Watcher.Outcome {
        guard try !planStatements(.publishTable, table).isEmpty else {
            let isMended = try LogicalSlot(turns: turns).mendPublication()
            return Watcher.Outcome(table: table.name, changed: isMended ? [table.name] : [])
        }
        var outcome = Watcher.Outcome(table: table.name, changed: [table.name])
        let slot = LogicalSlot(turns: turns)
        try slot.withSlotLock {
            try slot.prepareCapture()
            var named: [String] = []
            try turns.changeTable(table.name) {
                let rows = try turns.connection.query(PublishingSQL.publishTable, [table.oid])
                // In the last turn nothing is left to do.
                if rows.count > 0 {
                    named = (0..<rows.count).compactMap { rows.flag($0, 2) ? rows.text($0, 1) : nil }
                }
                guard rows.count > 0 else { return [] }
                return (0..<rows.count).compactMap { rows.text($0, 0) } + [Self.keepStatement(table)]
            }
            outcome.notes += named.map {
                "\($0) has no primary key, so its REPLICA IDENTITY is FULL now: every UPDATE and DELETE writes the whole old "
                    + "row to the WAL. With a primary key and `alter table \($0) replica identity default` it does not."
            }
            outcome.notes += try DeletionRules.exceptionFindings(of: table, on: turns.connection)
        }
        return outcome
    }

    /// Adds the triggers first, and removes the table from the publication once everything written before is stored:
    /// otherwise a row's newer version could reach the outbox before an older one that is still in the slot.
    private func changeToTriggers(_ table: NamedTable) throws -> Watcher.Outcome {
        let connection = turns.connection
        guard try awaitReader() else {
            throw AdminError(
                "The changes of \(table.name) in the WAL have to be stored first, but no hub reads them: start a hub "
                    + "with feed.capture: wal, and run this again. If none of them have to be kept, run `roost "
                    + "unwatch` first."
            )
        }
        let second = try AdminSession.openConnection(conninfo)
        let triggers = TriggerChange(plan: .watchTable, turns: turns)
        let closing =
            try planStatements(.retractTable, table)
            + [Self.keepStatement(table), "select roost.keep_partitions(\(table.oid)::oid)"]
        // If the triggers exist already, the lock alone separates the two methods.
        let lock = "lock table \(table.name) in share row exclusive mode"
        try turns.changeTable(
            table.name, by: { [lock] + (try triggers.remainingSteps(for: table).map(\.statement)) }, closing: closing
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

    /// Waits for a hub to read the slot, as one may be starting, or taking over from another.
    ///
    /// - Returns: false if none appears; true also if there is nothing left to read.
    private func awaitReader() throws -> Bool {
        let end = ContinuousClock.now + min(turns.patience.total, Self.takeover)
        while true {
            let slot = try turns.connection.query(PublishingSQL.slotReader)
            if slot.count == 0 || !slot.flag(0, 0) || slot.flag(0, 1) { return true }
            guard ContinuousClock.now < end else { return false }
            turns.reporter.reportProgress { $0.detail = "waits for a hub that reads the WAL" }
            turns.reporter.pause(.milliseconds(200))
            turns.reporter.reportProgress { $0.detail = nil }
        }
    }

    /// The time within which a running hub starts reading the WAL.
    private static let takeover = Duration.seconds(10)

    /// The longest time that writers wait for a hub to store the WAL.
    private static let storingTurn = Duration.milliseconds(1500)
}

/// The present capture of a table.
struct TableMembership {
    let isPublished: Bool
    /// True if the table or a part of it is unlogged: its changes are not in the WAL.
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

/// Statements about the publication `roost` and its slot.
enum PublishingSQL: String, NamedStatement {
    case requirementsOfWAL, publicationState, makePublication, mendPublication, makeSlot, slotReader, isStored, pushWAL,
        tableMembership, publishTable, retractTable
    static let file = StatementFile("Publishing.sql")
}
