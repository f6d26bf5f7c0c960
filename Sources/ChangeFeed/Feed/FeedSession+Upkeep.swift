import Glibc
import Logging

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
        guard let cursor = loop.progress.cursor, let system = loop.progress.systemIdentifier else { return }
        let row = try reader.query(SQL.storeCursor, [loop.configuration.node, system, cursor.text])
        loop.progress.isUnstored = false
        storeAt = .now + .milliseconds(100)
        loop.progress.handed.stored(insertedAt: row.integer(0, 0) ?? .max, flushedTo: row.integer(0, 1) ?? 0)
    }

    func prune() throws {
        do {
            let retention = String(loop.configuration.retention.components.seconds)
            let deleted = try reader.query(SQL.prune, [retention]).affectedRows
            loop.progress.statistics.pruned += deleted
            let messages = try reader.query("select roost.prune_messages($1)", [retention]).integer(0, 0) ?? 0
            // A full batch: there is more, but let windows go between.
            let isFull = deleted >= 5000 || messages >= 5000
            pruneAt = .now + (isFull ? .milliseconds(50) : loop.configuration.pruneInterval)
        } catch let error as PostgresError where error.kind == .server {
            loop.logger.warning("Old changes or messages cannot be deleted, so their tables grow: \(error.message)")
            pruneAt = .now + loop.configuration.pruneInterval
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
        try bell.demandAnswer()
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
        case .cancelRequest: _ = try reader.query("select pg_cancel_backend($1)", [String(bell.backendID)])
        }
    }

    /// Sleeps until something arrives or is due.
    func rest(from now: ContinuousClock.Instant) throws {
        var due = min(doorbell.pollAt, pruneAt)
        if loop.progress.isUnstored { due = min(due, storeAt) }
        if due - now < .milliseconds(1) { due = now + .milliseconds(1) }
        sockets.rest(watching: reader.descriptor, until: due)
    }
}
