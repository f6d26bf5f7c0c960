import Glibc
import Logging
import Postgres

/// What a session does besides reading windows.
extension FeedSession {
    func refreshCatalog(knowing roles: Set<String> = []) throws {
        let old = loop.progress.catalog
        let fresh = try CatalogReader.read(from: reader, roles: loop.progress.roles.union(roles)).keeping(old)
        loop.progress.roles = fresh.knownRoles
        versionAt = .now + Self.versionInterval
        guard !fresh.isSame(as: old) else { return }
        loop.adopt(fresh)
        loop.consumer.catalogChanged(fresh)
    }

    func storeCursor() throws {
        guard let system = loop.progress.systemIdentifier else { return }
        guard let place = loop.progress.settling.storable(settled: loop.consumer.observed.settled) else {
            storeAt = .now + .milliseconds(100)
            return
        }
        let isSettled = !loop.progress.settling.isWaiting
        let recovery = loop.progress.recovery ?? place.cursor
        let row: QueryResult
        do {
            row = try reader.query(
                SQL.storeCursor,
                [
                    loop.configuration.node, system, place.cursor.text, recovery.text,
                    loop.progress.timeline.map(String.init),
                ])
        } catch let error as PostgresError where error.kind == .server {
            return try cursorWasRefused(error)
        }
        if isCursorRefused { loop.logger.notice("The place to go on from is stored again.") }
        isCursorRefused = false
        loop.progress.hasStoredCursor = true
        loop.progress.storedRecovery = recovery
        loop.progress.isUnstored = !isSettled
        storeAt = .now + .milliseconds(100)
        loop.progress.handed.stored(
            covering: place.covered, insertedAt: row.integer(0, 0) ?? .max, flushedTo: row.integer(0, 1) ?? 0)
        try renewEpoch(insertedAt: row.integer(0, 0) ?? .max, flushedTo: row.integer(0, 1) ?? 0)
    }

    /// What is not settled when the hub stops comes again when it starts, to clients as well; so it is given a moment.
    func waitUntilSettled() {
        let end = ContinuousClock.now + .seconds(1)
        while loop.consumer.observed.settled < loop.consumer.observed.taken, ContinuousClock.now < end { usleep(2000) }
    }

    /// As where the disk is full. Changes are handed on all the same: the price is that a hub that is started anew
    /// repeats more.
    ///
    /// - Throws: where there is none at all: the next process would take it that nobody was served before, and bring nobody
    ///   what it missed.
    private func cursorWasRefused(_ error: PostgresError) throws {
        guard loop.progress.hasStoredCursor else {
            throw PostgresError(
                .server,
                """
                Postgres does not store where this hub begins (roost.cursor), without which a killed hub would lose changes; \
                let it be written: \(error.message)
                """)
        }
        storeAt = .now + .seconds(1)
        guard !isCursorRefused else { return }
        isCursorRefused = true
        loop.logger.warning(
            """
            Postgres does not store how far changes were handed on, so a restarted hub would repeat them; it is tried \
            again every second: \(error.message)
            """)
    }

    func prune() throws {
        let interval = loop.configuration.pruneInterval
        do {
            let retention = String(loop.configuration.retention.components.seconds)
            let batch = try pruner.deleteBatch(on: reader, retention: retention, logger: loop.logger)
            loop.progress.statistics.pruned += batch.changes
            if batch.changes > 0 { loop.publishStatistics() }
            if let news = pruneRound.took(batch.changes, isLast: batch.pause == nil, at: .now) {
                loop.logger.info("\(news)")
            }
            pruneAt = .now + (batch.pause ?? interval)
            if batch.pause == nil {
                try deleteForeignChanges()
                _ = try reader.query(SQL.pruneEpochs, [retention])
            }
        } catch let error as PostgresError where error.kind == .server {
            loop.logger.warning("Old changes or messages cannot be deleted, so their tables grow: \(error.message)")
            pruneAt = .now + interval
        }
    }

    func serveIdleWork() throws {
        guard loop.inbox.hasIdleWork else { return }
        // Work that waits for its own query must not be overtaken by other work in the middle.
        sockets.servesInbox = false
        defer { sockets.servesInbox = true }
        let limit = loop.configuration.statementLimit
        for work in loop.inbox.takeWhenIdle() {
            let ask: ((String, [String?]) throws -> [[String?]])? =
                reader.isBroken
                ? nil
                : { [reader] sql, parameters in
                    let rows = try reader.query(sql, parameters, within: limit)
                    return (0..<rows.count).map { row in (0..<rows.width).map { rows.text(row, $0) } }
                }
            work(
                FeedContext(catalog: loop.progress.catalog, status: loop.published.status, ask: ask) { [self] in
                    try refreshCatalog(knowing: $0)
                    return loop.progress.catalog
                })
        }
        if reader.isBroken { throw PostgresError(.connection, "The connection to Postgres broke during a query.") }
    }

    func serveBell() throws {
        for event in try bell.takeEvents() {
            switch event {
            case .granted: try perform(doorbell.lockGranted(at: .now))
            case .refused: doorbell.lockRefused(at: .now)
            case .released: doorbell.lockReleased()
            }
        }
        try bell.demandAnswer(asking: reader)
    }

    func serveRings() throws {
        let rings = try reader.takeNotifications()
        guard rings > 0 else { return }
        loop.progress.statistics.rings += rings
        for _ in 0..<rings { try perform(doorbell.rang(at: .now)) }
    }

    func perform(_ action: Doorbell.Action?) throws {
        switch action {
        case nil: break
        case .requestLock: try bell.requestLock()
        case .releaseLock: try bell.releaseLock()
        case .cancelRequest: try bell.cancelRequest(through: reader)
        }
    }

    /// Sleeps until something arrives or is due.
    func rest(from now: ContinuousClock.Instant) throws {
        var due = min(doorbell.pollAt, pruneAt, claim.lookAt)
        if loop.progress.isUnstored { due = min(due, storeAt) }
        if let scans = scansDue { due = min(due, scans) }
        if loop.consumer.recoveries?.hasNewcomers == true { due = min(due, newcomersAt) }
        sockets.others = scans.compactMap(\.scan.descriptor)
        if let demand = bell.nextDemand { due = min(due, demand) }
        if due - now < .milliseconds(1) { due = now + .milliseconds(1) }
        sockets.rest(watching: reader.descriptor, until: due)
    }
}
