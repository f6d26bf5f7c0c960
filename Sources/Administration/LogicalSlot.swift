import Capture
import Postgres

/// Creates and drops, for commands, the two things that a hub reads tables through: the publication `roost` and the
/// logical slot.
struct LogicalSlot {
    let turns: TableTurns
    private var connection: PostgresConnection { turns.connection }

    init(turns: TableTurns) { self.turns = turns }

    /// Runs `body` while no hub and no other command creates or drops the slot.
    func withSlotLock<Outcome>(_ body: () throws -> Outcome) throws -> Outcome {
        var wait = LockWait(turns.patience)
        while try !connection.query(CaptureSQL.lockSlot).flag(0, 0) {
            guard let pause = wait.nextPause(at: .now) else {
                throw AdminError(
                    "Another command or a hub is creating or dropping the logical slot; run this again later.")
            }
            turns.reporter.reportProgress {
                $0.detail =
                    "waits for another command or a hub that is creating or dropping the logical slot"
            }
            turns.reporter.pause(pause)
            turns.reporter.reportProgress { $0.detail = nil }
        }
        do {
            let outcome = try body()
            _ = try connection.query(CaptureSQL.unlockSlot)
            return outcome
        } catch {
            // Otherwise the session is gone, and the lock with it.
            if !connection.isBroken { _ = try connection.query(CaptureSQL.unlockSlot) }
            throw error
        }
    }

    /// Ensures that there are a publication and a slot, so that the slot contains everything that a table's writers do
    /// afterwards.
    ///
    /// - Throws: `AdminError` with the problem and its remedy.
    func prepareCapture() throws {
        let found = try connection.query(PublishingSQL.requirementsOfWAL)
        guard found.text(0, 0) == "logical" else {
            throw AdminError(
                "Tables cannot be read from the WAL, as wal_level is \(found.text(0, 0) ?? "unknown"): run `alter system set "
                    + "wal_level = logical` and restart Postgres, or use triggers (feed.capture: triggers).")
        }
        guard !found.flag(0, 3) else {
            throw AdminError(
                "The replication slot \(found.text(0, 2) ?? "") belongs to another plugin or database, not to roost; "
                    + "drop it with pg_drop_replication_slot, and run this again.")
        }
        try preparePublication(mayMake: found.flag(0, 5))
        let slot = try connection.query(CaptureSQL.slotState)
        if slot.count == 0 || !slot.flag(0, 0) { try createCapture(isLost: slot.count > 0, found) }
    }

    private func preparePublication(mayMake: Bool) throws {
        let publication = try connection.query(PublishingSQL.publicationState)
        if publication.count == 0 {
            guard mayMake else {
                throw AdminError(
                    "This role may not create the publication roost; run `grant create on database … to …`, or run "
                        + "this as the database's owner.")
            }
            try connection.runScript(PublishingSQL.makePublication)
        } else if publication.flag(0, 1) {
            throw AdminError(
                "The publication roost covers all tables or a whole schema, so it would also publish what Roost "
                    + "writes; drop it, and run this again, which creates another.")
        } else if !publication.flag(0, 0) {
            try connection.runScript(PublishingSQL.mendPublication)
        }
    }

    /// Makes the publication publish all operations again, if it was narrowed.
    ///
    /// - Returns: whether it was.
    func mendPublication() throws -> Bool {
        let publication = try connection.query(PublishingSQL.publicationState)
        guard publication.count > 0, !publication.flag(0, 1), !publication.flag(0, 0) else { return false }
        try connection.runScript(PublishingSQL.mendPublication)
        return true
    }

    /// In an order that never loses changes unnoticed, whatever happens in between (`CaptureSlot`).
    private func createCapture(isLost: Bool, _ found: QueryResult) throws {
        guard found.flag(0, 1) else {
            throw AdminError(
                "Reading the WAL needs a role that may replicate; run `alter role \(found.text(0, 6) ?? "…") "
                    + "replication` (or grant what your provider has for that, such as rds_replication), for the hub's "
                    + "role too.")
        }
        guard isLost || found.integer(0, 4) ?? 0 > 0 else {
            throw AdminError(
                "All replication slots are in use; raise max_replication_slots (needs a restart), or drop one that "
                    + "nobody needs, which `roost doctor` names.")
        }
        _ = try connection.query(CaptureSQL.slotIsGone)
        if isLost { _ = try connection.query(CaptureSQL.dropSlot) }
        let place = try createSlot()
        _ = try connection.query(CaptureSQL.beginCapture, [place])
    }

    /// No writer waits behind this statement, so it may take the whole patience; the reporter names the transaction it
    /// waits for.
    private func createSlot() throws -> String? {
        let limit = turns.patience.total
        try connection.runScript("set lock_timeout = '\(max(1, Int(limit / .milliseconds(1))))ms'")
        do {
            // Several transactions may be waited for, one after the other.
            let place = try connection.query(PublishingSQL.makeSlot, within: limit * 3 + .seconds(30)).text(0, 0)
            try connection.runScript("reset lock_timeout")
            return place
        } catch let error as PostgresError where error.sqlState == SQLState.lockNotAvailable {
            let holder = LockHolder(try connection.query(LockSQL.oldestWriter))
            try connection.runScript("reset lock_timeout")
            throw AdminError(
                "The logical slot can be created once all transactions that write have ended, in all databases of the "
                    + "server; the oldest belongs to \(holder?.description ?? "somebody"): "
                    + "\(holder?.remedy ?? "wait for it"), and run this again (--wait SECONDS tries for longer).")
        }
    }

    /// Drops the slot if no table is read from the WAL any more and no hub reads it; a hub would drop it by itself.
    ///
    /// - Returns: remarks for the user.
    func dropUnread() throws -> [String] {
        guard try isUnused() else { return [] }
        return try withSlotLock {
            guard try isUnused() else { return [] }
            // The order matters: a row without a slot means that changes are missing.
            _ = try connection.query(CaptureSQL.forgetCapture)
            _ = try connection.query(CaptureSQL.dropSlot)
            return [
                "No table is read from the WAL any more, and no hub was running to drop the logical slot, so it was "
                    + "dropped now."
            ]
        }
    }

    private func isUnused() throws -> Bool {
        let slot = try connection.query(PublishingSQL.slotReader)
        guard slot.count > 0, !slot.flag(0, 1) else { return false }
        let publication = try connection.query(PublishingSQL.publicationState)
        return publication.count == 0 || publication.integer(0, 2) == 0
    }
}
