import Logging
import Postgres

/// The logical slot as the leading hub finds or creates it, and drops it once no table is read from the WAL.
struct CaptureSlot {
    let connection: PostgresConnection
    let sockets: CaptureSockets
    let logger: Logger
    let isStopping: () -> Bool
    /// Called with the reason why the slot cannot be created, a sentence without a full stop.
    let report: (String) -> Void

    /// - Parameter stream: a walsender's session, which creates the slot if there is none.
    /// - Returns: the slot's name and the position to continue from; nil if the hub stops meanwhile.
    func findOrCreate(by stream: PostgresConnection) throws -> (name: String, position: CapturePosition)? {
        try lock()
        defer { unlock() }
        guard let name = try connection.query(CaptureSQL.requirements).text(0, 1) else { return nil }
        let state = try connection.query(CaptureSQL.slotState)
        let isThere = state.count > 0 && state.flag(0, 0)
        if isThere, let position = try storedPosition() { return (name, position) }
        var begin = isThere ? state.text(0, 1) : nil
        if begin == nil {
            _ = try connection.query(CaptureSQL.slotIsGone)
            if state.count > 0 { _ = try connection.query(CaptureSQL.dropSlot) }
            begin = try createSlot(name, by: stream)
        }
        guard let begin else { return nil }
        if try connection.query(CaptureSQL.beginCapture, [begin]).flag(0, 0) {
            logger.warning(
                """
                The logical slot \(name) was gone, and another was created: changes that were committed in between are \
                missing. Clients connected for row changes are told to load their data again.
                """)
        } else {
            logger.info("Changes are read from the WAL, by the logical slot \(name).")
        }
        guard let position = try storedPosition() else { return nil }
        return (name, position)
    }

    /// Nil if nothing was stored yet, or if the position is unknown.
    private func storedPosition() throws -> CapturePosition? {
        let row = try connection.query(CaptureSQL.storedPosition)
        guard row.count > 0, let lsn = row.text(0, 0).flatMap({ LSN($0) }) else { return nil }
        let part = row.text(0, 1).flatMap { LSN($0) }.map {
            CapturePosition.Part(commit: $0, rows: Int(row.integer(0, 2) ?? 0))
        }
        return CapturePosition(lsn: lsn, part: part)
    }

    /// Creates the slot, which takes until all writing transactions have ended.
    ///
    /// - Returns: the slot's starting position; nil if the hub stops meanwhile.
    private func createSlot(_ name: String, by stream: PostgresConnection) throws -> String? {
        try stream.send(script: "CREATE_REPLICATION_SLOT \"\(name)\" LOGICAL pgoutput NOEXPORT_SNAPSHOT")
        let began = ContinuousClock.now
        while !isStopping() {
            if let result = try stream.takeResult() {
                if let error = result.error { throw error }
                return result.text(0, 1)
            }
            sockets.waitForInput(watching: [stream.descriptor], until: .now + .seconds(2))
            guard ContinuousClock.now - began > .seconds(2) else { continue }
            let blockers = try connection.query(CaptureSQL.blockersOfSlot, [String(stream.backendID)]).text(0, 0) ?? ""
            report(
                "the logical slot \(name) can be created once all transactions that write have ended"
                    + (blockers.isEmpty ? "" : "; it waits for \(blockers)"))
        }
        return nil
    }

    /// Drops the slot if the publication has no table left, under the lock that `roost watch` holds while it adds one.
    func dropIfUnused() throws {
        guard try connection.query(CaptureSQL.lockSlot).flag(0, 0) else { return }
        defer { unlock() }
        guard try connection.query(CaptureSQL.requirements).integer(0, 2) ?? 0 == 0 else { return }
        // The order matters: a row without a slot means that changes are missing.
        _ = try connection.query(CaptureSQL.forgetCapture)
        let dropped = try connection.query(CaptureSQL.dropSlot)
        if dropped.count > 0 {
            logger.notice("No table is read from the WAL any more: the logical slot is dropped.")
        }
    }

    /// Abandons a slot that cannot be read any further. The next leader creates another one and reports that changes
    /// are missing.
    func giveUp() throws {
        try lock()
        defer { unlock() }
        _ = try connection.query(CaptureSQL.slotIsGone)
        let end = ContinuousClock.now + .seconds(8)
        while true {
            do {
                _ = try connection.query(CaptureSQL.dropSlot)
                return
            } catch let error as PostgresError where error.sqlState == SQLState.objectInUse && ContinuousClock.now < end
            {
                _ = try connection.query(CaptureSQL.endReader)
                sockets.waitForInput(watching: [], until: .now + .milliseconds(100))
            }
        }
    }

    /// Skips a transaction that cannot be decoded, and records that its changes are missing.
    func skipTransaction(_ commit: LSN, because error: PostgresError) throws {
        try lock()
        defer { unlock() }
        _ = try connection.query(CaptureSQL.beginCapture, [LSN(commit.rawValue &+ 1).description])
        logger.warning(
            """
            Postgres cannot decode a transaction that was committed at \(commit): changes of it are missing. Clients connected for \
            row changes are told to load their data again: \(error.message)
            """)
    }

    private func lock() throws {
        while try !connection.query(CaptureSQL.lockSlot).flag(0, 0) {
            guard !isStopping() else { throw PostgresError(.connection, "The hub stops.") }
            report("another command (`roost watch`, `roost unwatch`) is working on the logical slot")
            sockets.waitForInput(watching: [], until: .now + .milliseconds(200))
        }
    }

    private func unlock() {
        do {
            _ = try connection.query(CaptureSQL.unlockSlot)
        } catch {
            // The session is gone then, and the lock with it.
            logger.debug("The lock of the logical slot was not released: \(error)")
        }
    }
}
