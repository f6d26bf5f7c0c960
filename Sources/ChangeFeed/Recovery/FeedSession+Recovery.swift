import Hub
import Logging
import Matching
import Postgres

/// Brings members to the present between two windows.
extension FeedSession {
    /// Rows that a slice looks at at most: about as many milliseconds' worth of them as a window may take.
    private static let sliceRows = 2000
    private static let sliceBytes = 262_144
    /// How long scans are served in one go.
    private static let scanTime = Duration.milliseconds(10)
    /// What the second scan is kept for, in transactions: whoever lacks a day must not stop those who lack a minute.
    private static let shortDistance: UInt64 = 100_000
    /// How long the session of a scan is kept for the next one.
    private static let scanRest = Duration.seconds(10)

    /// - Returns: whether there is more to do at once.
    func serveRecoveries() throws -> Bool {
        guard let desk = loop.consumer.recoveries, !desk.isEmpty else {
            scans = []
            return false
        }
        let ask: SubscriptionBinder.Ask = { [reader, limit = loop.configuration.statementLimit] sql in
            let rows = try reader.query(sql, within: limit)
            return (0..<rows.count).map { row in (0..<rows.width).map { rows.text(row, $0) } }
        }
        desk.bind(asking: ask)
        try receiveNewcomers(desk, ask)
        try serveSlice(desk)
        try serveScans(desk)
        return desk.hasNear || isScanReady || desk.hasFar && scans.isEmpty
    }

    private func receiveNewcomers(_ desk: RecoveryScheduler, _ ask: @escaping SubscriptionBinder.Ask) throws {
        guard desk.hasNewcomers, ContinuousClock.now >= newcomersAt else { return }
        newcomersAt = .now + .milliseconds(5)
        // A cursor may come from another hub that is ahead of this one, and a policy may have changed while this one slept:
        // both are settled by a look that begins now.
        versionAt = .now
        lookAt = .now
        try poll()
        let pruned = try pruned()
        guard let epoch = loop.progress.epoch, let present = loop.progress.cursor, let restart = loop.progress.restart
        else { return }
        desk.begin(
            on: FeedHistory(
                epoch: epoch, epochs: try knownEpochs(of: desk.epochsOfNewcomers.subtracting([epoch])),
                present: present, marks: loop.progress.marks, restart: restart, pruned: pruned),
            slicesOf: Self.sliceRows, asking: ask)
    }

    /// Sees every transaction of which a change may be gone; nil where nothing is.
    func pruned() throws -> Snapshot? {
        let row = try reader.query(SQL.recoveryGround)
        return OutboxCheck.pruned(upTo: row.text(0, 0), sparing: row.text(0, 1))
    }

    /// Reads what is left for all who wait, if it is little, and brings them to the present: nothing is read live before
    /// they have been told that it comes live.
    private func serveSlice(_ desk: RecoveryScheduler) throws {
        guard desk.hasNear, let present = loop.progress.present else { return }
        let members = desk.takeNear()
        try loop.consumer.settle(members.map(\.question.group))
        // Where windows bring more than a slice, slices must grow, or nobody would ever arrive.
        let growth = min(4, members.map(\.overflows).min() ?? 0)
        let limit = Self.sliceRows << growth
        let starts = members.compactMap(\.start)
        var rows: [RecoveredRow] = []
        var (wanted, count) = (0, 0)
        if starts.contains(where: { !present.window.precedes($0.seen) }) {
            var taker = RecoveredRowReader(catalog: loop.progress.catalog)
            let statement = RecoveryStatement.text(
                starts: starts, upTo: present.window, of: prefilter(desk, members),
                commitTimestamps: hasCommitTimestamps,
                .limit(limit + 1, bytes: Self.sliceBytes << growth))
            loop.progress.statistics.recoveryReads += 1
            try reader.stream(statement, within: loop.configuration.statementLimit) { row in
                wanted = row.integer(0, 10).map { Int($0) } ?? 0
                count = row.integer(0, 11).map { Int($0) } ?? .max
                if row.flag(0, 9) { rows.append(try taker.row(row)) }
                return count <= limit
            }
        }
        // What was there when they began may be gone since.
        if let pruned = try pruned() { desk.changesAreGone(upTo: pruned, for: members) }
        guard count <= limit, rows.count == wanted else { return desk.overflowed(members) }
        rows.sort { $0.id < $1.id }
        let served = Dictionary(members.map { ($0.key, $0) }, uniquingKeysWith: { $1 })
        for start in stride(from: 0, to: rows.count, by: RecoveryScan.batchRows) {
            let end = min(start + RecoveryScan.batchRows, rows.count)
            try desk.tell(rows[start..<end], to: served, of: present.window)
        }
        desk.finish(members, at: present)
    }

    /// Which rows can concern them; nil where tables were others than today when one of them was last told something: what
    /// a filter matches is written there in a way that today's columns do not tell.
    private func prefilter(_ desk: RecoveryScheduler, _ members: [RecoveryMember]) -> RowPrefilter? {
        guard let since = loop.progress.tablesSince,
            members.allSatisfy({ $0.start.map { since.precedes($0.seen) } ?? true })
        else { return nil }
        return desk.prefilter(for: members)
    }

    private var isScanReady: Bool {
        scans.contains { if case .ready = $0.state { true } else { false } }
    }

    private func serveScans(_ desk: RecoveryScheduler) throws {
        try beginScan(desk)
        for index in scans.indices.reversed() {
            let scan = scans[index].scan
            do {
                scans[index].state = try scan.serve(desk, loop.progress.catalog, for: Self.scanTime)
            } catch .judging(let error) {
                throw error
            } catch .reading(let error) {
                loop.logger.warning("Missed changes could not be read, so clients are asked to join again: \(error)")
                desk.fail(scan.members)
                scans[index].state = .ended
            }
            if case .ended = scans[index].state {
                scanSession = scan.session.map { ($0, .now + Self.scanRest) } ?? scanSession
                scans.remove(at: index)
            }
        }
    }

    /// One scan for all, and a second one for those who lack little, while the first lasts.
    private func beginScan(_ desk: RecoveryScheduler) throws {
        guard desk.hasFar, scans.count < 2, let present = loop.progress.cursor else { return }
        let members = desk.takeFar(within: scans.isEmpty ? .max : Self.shortDistance, of: present)
        guard !members.isEmpty else { return }
        loop.progress.statistics.recoveryReads += 1
        do {
            let connection = try scanConnection()
            let scan = try RecoveryScan(
                members, upTo: present, of: prefilter(desk, members), commitTimestamps: hasCommitTimestamps,
                on: connection, within: .seconds(60))
            scans.append((scan, .ready))
            // They may have waited long, and what they lack been pruned meanwhile; they are told when they join again.
            if let pruned = try pruned() { desk.changesAreGone(upTo: pruned, for: members) }
        } catch {
            loop.logger.warning("Missed changes cannot be read, so clients are asked to join again: \(error)")
            desk.fail(members)
        }
    }

    private func scanConnection() throws -> PostgresConnection {
        let kept = scanSession?.connection
        scanSession = nil
        // Postgres may have ended it while it rested.
        if let kept, kept.isSilent { return kept }
        let connection = try PostgresConnection(
            ConnectionOptions(conninfo: loop.configuration.conninfo), waiter: sockets, logger: loop.logger)
        try connection.run(SQL.sessionOfFeed)
        try AbandonedStatements.shared.demandFew(on: connection)
        return connection
    }

    /// When a scan wants to be looked at, whatever arrives.
    var scansDue: ContinuousClock.Instant? {
        scans.compactMap { if case .waiting(let until) = $0.state { until } else { nil } }.min()
    }

    // MARK: For a hub that is killed

    /// Finds out on which history the feed is now, and, once in a process, what the last one left.
    func findRestart(_ position: FeedPosition) throws {
        let isFirst = loop.progress.restart == nil
        guard let cursor = loop.progress.cursor else { return }
        var start = cursor
        if isFirst {
            let stored = try reader.query(SQL.recoveryStored, [loop.configuration.node])
            let left = stored.count > 0 ? stored.text(0, 0).flatMap { Snapshot($0) } : nil
            loop.progress.hasStoredCursor = left != nil
            loop.progress.restartUntil = .now + loop.configuration.recoveryWindow
            loop.progress.marks.grace = loop.configuration.recoveryWindow + .seconds(10)
            switch (left, position.stored) {
            case (nil, _):
                loop.progress.restart = .snapshot(cursor)
                loop.progress.restartUntil = nil
                loop.consumer.nobodyIsFromBefore()
            case (_?, nil): loop.progress.restart = .foreign
            case (let left?, let stored?):
                // Mark 0 stands for it, so that it is stored again for as long as anybody may need it.
                start = left.precedes(stored) ? left : stored
                loop.progress.restart = .snapshot(start)
            }
        } else if case .snapshot(let snapshot) = loop.progress.restart,
            !loop.progress.isSameHistory || !snapshot.precedes(cursor)
        {
            loop.progress.restart = .snapshot(cursor)
        }
        loop.progress.marks.connected(at: start, isSameHistory: isFirst || loop.progress.isSameHistory, now: .now)
        // A first mark at once, so that hardly anybody has none, which would count as having come with the last process.
        if isFirst { loop.progress.marks.handedOn() }
        loop.progress.storedRecovery = nil
    }

    /// Asks what clients still need, about once a second, and has it stored where it moved. Part of a poll, so that an idle
    /// hub does not wake up for it.
    func followRecovery(now: ContinuousClock.Instant) {
        guard now >= recoveryAt else { return }
        recoveryAt = now + .seconds(1)
        if let until = loop.progress.restartUntil, now < until {
            loop.progress.oldestMark = 0
        } else {
            loop.progress.oldestMark = loop.consumer.oldestMark ?? loop.progress.marks.latest
        }
        if loop.progress.recovery != loop.progress.storedRecovery { loop.progress.isUnstored = true }
    }
}
