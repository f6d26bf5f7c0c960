/// The parts of the registry that must be written down, so that the next process knows this one's clients.
///
/// For each key, the number of sessions that clients may come back for. A join is answered when its own session is
/// written down, or when the list no longer counts as complete: whenever the hub is killed, a client missing from a
/// list that counts was told nothing yet.
///
/// The list counts while the database contains a claim that it is complete which has not been withdrawn
/// (SchemaRecovery.sql). Claims and withdrawals are written by different threads, each on its own connection, so
/// that one can be written when the other cannot. This code ensures that knowledge from before a withdrawal never leads
/// to a claim for a time after it.
struct SessionRecording {
    /// A writer is present.
    var isKept = false
    /// Keys whose stored state is out of date.
    var changed: Set<RecoveryKey> = []
    /// A join was answered although its session was not written.
    var isBehind = false
    /// The list in the database may count as complete.
    var mayCount = true
    /// A withdrawal is in progress.
    var isWithdrawing = false
    var withdrawals = 0
    var withdraw: @Sendable () -> Void = {}
    /// A join waits for some of them.
    var isAwaited = false
    var whenAwaited: @Sendable () -> Void = {}
    /// Joins wait until it is known whether another hub has had their clients (`SessionsElsewhere.swift`).
    var looksElsewhere = false
    var askElsewhere: SessionRegistry.AskElsewhere?
    /// Members whose sessions on other hubs end once they lack nothing from there (`SessionClaims.swift`).
    var claims: [SessionRegistry.PendingClaim] = []
    /// The progress of the sessions that prove it, second by second.
    var pace = ProofPace()
    /// Sessions below this mark do not follow the others (`surveyProgress`).
    var slow = 0
    /// The mark that may be stored as proven for all followers.
    var proven = 0
}

extension SessionRegistry {
    /// One key, the number of its sessions, and their place; with a count of 0, the stored record is deleted.
    package struct Record: Sendable, Equatable {
        package let key: RecoveryKey
        package let count: Int
        package let place: Place
        /// The keys for which clients on other hubs must be searched: this one and that of its user, if a join waits
        /// for the result.
        package let sought: [RecoveryKey]
        /// When the key's only session was lost, in monotonic milliseconds; nil if it is live or there are several.
        package let lostAt: Int64?

        package init(
            key: RecoveryKey, count: Int, place: Place = .at(.restart), sought: [RecoveryKey] = [], lostAt: Int64? = nil
        ) {
            self.key = key
            self.count = count
            self.place = place
            self.sought = sought
            self.lostAt = lostAt
        }
    }

    /// The last process's record of one key.
    struct Restored {
        let count: Int
        let point: RecoveryPoint
        let lostAt: Int64?

        init(_ record: Record) {
            count = record.count
            lostAt = record.lostAt
            // Marks belonged to that process.
            point = if case .at(.restored(let snapshot)) = record.place { .restored(snapshot) } else { .restart }
        }
    }

    /// Starts recording changes for a writer, which calls `isWritten`.
    ///
    /// - Parameters:
    ///   - whenAwaited: called from any thread and under the registry's lock, when a join waits for a write.
    ///   - withdraw: called from any thread, when the list must no longer count as complete; it leads to
    ///     `withdrawalEnded`.
    package func startRecording(
        whenAwaited: @escaping @Sendable () -> Void, withdraw: @escaping @Sendable () -> Void = {}
    ) {
        state.withLock {
            $0.recording.isKept = true
            $0.recording.whenAwaited = whenAwaited
            $0.recording.withdraw = withdraw
        }
    }

    /// Restores the last process's sessions. Call before any join; later calls have no effect.
    package func restoreSessions(_ records: [Record]) {
        state.withLock { state in
            guard state.restored == nil else { return }
            let left = records.filter { $0.count > 0 }.map { ($0.key, Restored($0)) }
            state.restored = Dictionary(left) { $0.count < $1.count ? $1 : $0 }
            for (key, left) in state.restored ?? [:] {
                state.buckets[key] = Bucket(recorded: left.count, place: .at(left.point))
            }
        }
    }

    /// Whether all clients that may come back are known, so that a list of them would be complete.
    package func isComplete(at now: HubTime) -> Bool {
        state.withLock { state in
            if state.recording.isBehind, state.recording.changed.isEmpty { state.recording.isBehind = false }
            return !state.recording.isBehind
                && (state.restored != nil
                    || state.restartUntil.map { $0 <= state.clock.time(at: now.monotonic) } ?? false)
        }
    }

    /// Assumes that nothing is written any more: everything comes from `takeChanged` again.
    package func nothingIsWritten() {
        state.withLock { state in
            for key in Array(state.buckets.keys) {
                state.buckets[key]?.recorded = 0
                state.buckets[key]?.place = nil
                state.buckets[key]?.isWrittenAsLost = false
                Self.recordChange(key, &state)
            }
            // Clients of the last process that have not come yet.
            for (key, left) in state.restored ?? [:] where left.count > 0 { state.recording.changed.insert(key) }
        }
    }

    /// Removes and returns the records to write next.
    package func takeChanged(upTo most: Int) -> [Record] {
        state.withLock { state in
            var keys = Array(state.recording.changed.prefix(most))
            if keys.count < state.recording.changed.count {
                // Sessions that gave way are stored under their user's key, and other hubs must not miss both.
                let taken = Set(keys)
                let users = Set(keys.lazy.filter { $0.user != 0 }.map(\.ofUser)).subtracting(taken)
                keys += users.filter(state.recording.changed.contains)
            }
            let records = keys.map { key in
                let count = Self.count(of: key, state)
                return Record(
                    key: key, count: count, place: Self.place(of: key, state),
                    sought: count > 0 ? Self.soughtKeys(key, state) : [], lostAt: Self.writtenLoss(of: key, state))
            }
            for key in keys {
                state.recording.changed.remove(key)
                // Until it is known which of the two is stored, neither counts.
                state.buckets[key]?.place = nil
            }
            state.recording.isAwaited = false
            return records
        }
    }

    /// Handles the end of a write, successful or not.
    ///
    /// - Parameter elsewhere: other hubs with clients of the sought keys, searched for after the write.
    package func isWritten(
        _ records: [Record], successfully: Bool, elsewhere: [RecoveryKey: [Elsewhere]] = [:]
    ) {
        let (sessions, ask) = state.withLock { state in
            var asked: [LiveSession] = []
            for record in records {
                if successfully {
                    asked += Self.recordFound(elsewhere, of: record, &state)
                    if state.buckets[record.key] != nil {
                        state.buckets[record.key]?.recorded = record.count
                        state.buckets[record.key]?.place = record.count > 0 ? record.place : nil
                        state.buckets[record.key]?.isWrittenAsLost = record.lostAt != nil
                    } else if record.count > 0 {
                        state.buckets[record.key] = Bucket(
                            recorded: record.count, place: record.place, isWrittenAsLost: record.lostAt != nil)
                    }
                    Self.recordChange(record.key, &state)
                    Self.seekAnew(record.key, &state)
                } else {
                    // It is unknown whether they were written, so the lower number counts.
                    if let recorded = state.buckets[record.key]?.recorded {
                        state.buckets[record.key]?.recorded = min(recorded, record.count)
                    }
                    state.recording.changed.insert(record.key)
                }
            }
            return (asked, state.recording.askElsewhere)
        }
        guard let ask, !sessions.isEmpty else { return }
        ask(Self.question(elsewhere, for: sessions)) { [self] in recordFound($0, of: elsewhere, for: sessions) }
    }

    package var hasChanged: Bool { state.withLock { !$0.recording.changed.isEmpty } }

    /// Whether a member's join can be answered as far as recording is concerned.
    ///
    /// - Parameter waited: how long it has waited for that, in milliseconds.
    func isRecorded(_ session: LiveSession, after waited: Int64 = 0) -> Bool {
        state.withLock { state in
            guard state.recording.isKept else { return true }
            if waited >= Self.longestQuestion, session.elsewhere == nil { session.elsewhere = session.presumed }
            guard session.elsewhere != nil || !state.recording.looksElsewhere else { return false }
            // Some of the sessions that were to be written with it may have gone since.
            guard let bucket = state.buckets[session.key],
                bucket.recorded >= min(session.needed, Self.count(of: session.key, state)), !bucket.isWrittenAsLost
            else { return false }
            return bucket.place?.covers(session.origin.point, proven: state.recording.proven) ?? false
        }
    }

    /// Handles a session that takes too long to be written. If the list counts as complete, that must end first.
    ///
    /// - Returns: whether the join may be answered all the same: not if an unknown other hub may have its client.
    func mayGoUnrecorded(_ session: LiveSession) -> Bool {
        let withdraw: (@Sendable () -> Void)? = state.withLock { state in
            state.recording.isBehind = true
            guard state.recording.mayCount, !state.recording.isWithdrawing else { return nil }
            state.recording.isWithdrawing = true
            return state.recording.withdraw
        }
        withdraw?()
        return state.withLock { state in
            !state.recording.mayCount && (session.elsewhere != nil || !state.recording.looksElsewhere)
        }
    }

    /// Handles the outcome of `withdraw`; an unknown outcome counts as a failure.
    package func withdrawalEnded(successfully: Bool) {
        state.withLock { state in
            state.recording.isWithdrawing = false
            guard successfully else { return }
            state.recording.mayCount = false
            state.recording.withdrawals += 1
        }
    }

    /// The number of withdrawals of the claim that the list is complete. Read it before reading the turn that the next
    /// claim is for.
    package var withdrawals: Int { state.withLock { $0.recording.withdrawals } }

    /// Prepares the claim that the list is complete, for a turn that was read after this many withdrawals.
    ///
    /// - Returns: whether the claim would be true. If so, the list may count from now on.
    package func beginsClaim(at now: HubTime, after withdrawals: Int) -> Bool {
        guard isComplete(at: now) else { return false }
        return state.withLock { state in
            guard !state.recording.isBehind, !state.recording.isWithdrawing,
                state.recording.withdrawals == withdrawals
            else { return false }
            state.recording.mayCount = true
            return true
        }
    }

    // MARK: Under the lock

    static func count(of key: RecoveryKey, _ state: State) -> Int {
        let waiting = state.restored?[key]?.count ?? 0
        guard let bucket = state.buckets[key] else { return waiting }
        if bucket.sessions.ended.contains(where: { $0.isMany && $0.isAwaited }) { return many }
        let live = bucket.sessions.live.lazy.filter { $0.trace.isSettled && !$0.trace.isGone }
        return min(many, waiting + live.prefix(many).count + bucket.sessions.ended.lazy.filter(\.isAwaited).count)
    }

    /// Handles a change of the key's sessions, or of their positions.
    static func recordChange(_ key: RecoveryKey, needing session: LiveSession? = nil, _ state: inout State) {
        updateSize(key, &state)
        guard state.recording.isKept else {
            if state.buckets[key]?.isEmpty == true { dropKey(key, &state) }
            return
        }
        let count = count(of: key, state)
        let recorded = state.buckets[key]?.recorded ?? 0
        session?.needed = count
        // Even if the number stays the same, it is written again to search other hubs.
        let isSought = state.recording.looksElsewhere && session?.isSought ?? false
        let isPlaced = isPlaced(key, session, state)
        if count == recorded, isPlaced, !isSought {
            // Another session may wait for the search that comes with a write.
            if session != nil || !state.recording.looksElsewhere { state.recording.changed.remove(key) }
        } else {
            state.recording.changed.insert(key)
        }
        if count > recorded || !isPlaced || isSought, session != nil, !state.recording.isAwaited {
            state.recording.isAwaited = true
            state.recording.whenAwaited()
        }
        if count == 0, recorded == 0, state.buckets[key]?.isEmpty == true { dropKey(key, &state) }
    }
}
