/// What is to be written down of the registry, so that the next process knows whom this one served.
///
/// For each key the number of sessions somebody may come back for. A join is answered when its own is written down, or
/// when the list does not count as complete any more, so that whenever the hub is killed who is not on a list that counts
/// was told nothing yet.
///
/// The list counts while the database has a claim that it is complete, and nobody has withdrawn that
/// (Migration012Losses.sql). The two are written by different threads, each on a connection of its own, so that one can
/// be written where the other can not. Here it is seen to that no claim is made for a time after a withdrawal by what was
/// known before it.
struct SessionRecording {
    /// Somebody writes.
    var isKept = false
    /// Keys of which something else is to be written down.
    var changed: Set<RecoveryKey> = []
    /// A join was answered although its session was not written.
    var isBehind = false
    /// The list in the database may count as complete.
    var mayCount = true
    /// A withdrawal is under way.
    var isWithdrawing = false
    var withdrawals = 0
    var withdraw: @Sendable () -> Void = {}
    /// A join waits for some of them.
    var isAwaited = false
    var whenAwaited: @Sendable () -> Void = {}
    /// Joins wait until it is known whether another hub has had their clients (`SessionsElsewhere.swift`).
    var looksElsewhere = false
    var askElsewhere: SessionRegistry.AskElsewhere?
    /// Members whose sessions on other hubs end once they lack nothing of them (`SessionClaims.swift`).
    var claims: [SessionRegistry.PendingClaim] = []
    /// How far those are who prove it, second by second.
    var pace = ProofPace()
    /// Whoever is not as far does not follow the others (`survey`).
    var slow = 0
    /// What may be written down as proven for all who follow.
    var proven = 0
}

extension SessionRegistry {
    /// One key, how many sessions of it there are, and where they stand; with 0 it is to be forgotten.
    package struct Record: Sendable, Equatable {
        package let key: RecoveryKey
        package let count: Int
        package let place: Place
        /// The keys of which it is to be found out which other hubs had somebody: this one and that of its user, where somebody has
        /// joined and waits for it.
        package let sought: [RecoveryKey]
        /// When the only session of the key was lost, in monotonic milliseconds; nil where it is there, or several are.
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

    /// Of one key, what the last process left.
    struct Restored {
        let count: Int
        let point: RecoveryPoint
        let lostAt: Int64?

        init(_ record: Record) {
            count = record.count
            lostAt = record.lostAt
            // Marks were that process's own.
            point = if case .at(.restored(let snapshot)) = record.place { .restored(snapshot) } else { .restart }
        }
    }

    /// Somebody will write down what changes, and calls `isWritten`.
    ///
    /// - Parameters:
    ///   - whenAwaited: called from any thread and under the registry's lock, when a join waits for it.
    ///   - withdraw: called from any thread, when the list must not count as complete any more; it leads to `withdrawn`.
    package func record(
        whenAwaited: @escaping @Sendable () -> Void, withdraw: @escaping @Sendable () -> Void = {}
    ) {
        state.withLock {
            $0.recording.isKept = true
            $0.recording.whenAwaited = whenAwaited
            $0.recording.withdraw = withdraw
        }
    }

    /// Whom the last process served. To be called before anybody joins; otherwise it is not known.
    package func restore(_ records: [Record]) {
        state.withLock { state in
            guard state.restored == nil else { return }
            let left = records.filter { $0.count > 0 }.map { ($0.key, Restored($0)) }
            state.restored = Dictionary(left) { $0.count < $1.count ? $1 : $0 }
            for (key, left) in state.restored ?? [:] {
                state.buckets[key] = Bucket(recorded: left.count, place: .at(left.point))
            }
        }
    }

    /// Whether all who may come back are known, so that a list of them would be complete.
    package func isComplete(at now: HubTime) -> Bool {
        state.withLock { state in
            if state.recording.isBehind, state.recording.changed.isEmpty { state.recording.isBehind = false }
            return !state.recording.isBehind
                && (state.restored != nil
                    || state.restartUntil.map { $0 <= state.clock.time(at: now.monotonic) } ?? false)
        }
    }

    /// Nothing is written down any more, as far as anybody knows. All there is comes from `takeChanged` again.
    package func nothingIsWritten() {
        state.withLock { state in
            for key in Array(state.buckets.keys) {
                state.buckets[key]?.recorded = 0
                state.buckets[key]?.place = nil
                state.buckets[key]?.isWrittenAsLost = false
                Self.note(key, &state)
            }
            // Who was served before and has not come yet.
            for (key, left) in state.restored ?? [:] where left.count > 0 { state.recording.changed.insert(key) }
        }
    }

    /// What is to be written next.
    package func takeChanged(upTo most: Int) -> [Record] {
        state.withLock { state in
            var keys = Array(state.recording.changed.prefix(most))
            if keys.count < state.recording.changed.count {
                // What gave way stands under its user's key, and other hubs must not find neither.
                let taken = Set(keys)
                let users = Set(keys.lazy.filter { $0.user != 0 }.map(\.ofUser)).subtracting(taken)
                keys += users.filter(state.recording.changed.contains)
            }
            let records = keys.map { key in
                let count = Self.count(of: key, state)
                return Record(
                    key: key, count: count, place: Self.place(of: key, state),
                    sought: count > 0 ? Self.seek(key, state) : [], lostAt: Self.writtenLoss(of: key, state))
            }
            for key in keys {
                state.recording.changed.remove(key)
                // Until it is known which of both is written, neither counts.
                state.buckets[key]?.place = nil
            }
            state.recording.isAwaited = false
            return records
        }
    }

    /// They were written, or were not.
    ///
    /// - Parameter elsewhere: other hubs that have had somebody of the keys that were sought, looked for after they were written.
    package func isWritten(
        _ records: [Record], successfully: Bool, elsewhere: [RecoveryKey: [Elsewhere]] = [:]
    ) {
        let (sessions, ask) = state.withLock { state in
            var asked: [LiveSession] = []
            for record in records {
                if successfully {
                    asked += Self.note(elsewhere, of: record, &state)
                    if state.buckets[record.key] != nil {
                        state.buckets[record.key]?.recorded = record.count
                        state.buckets[record.key]?.place = record.count > 0 ? record.place : nil
                        state.buckets[record.key]?.isWrittenAsLost = record.lostAt != nil
                    } else if record.count > 0 {
                        state.buckets[record.key] = Bucket(
                            recorded: record.count, place: record.place, isWrittenAsLost: record.lostAt != nil)
                    }
                    Self.note(record.key, &state)
                    Self.seekAnew(record.key, &state)
                } else {
                    // Nobody knows whether they were, so what counts is the less of both.
                    if let recorded = state.buckets[record.key]?.recorded {
                        state.buckets[record.key]?.recorded = min(recorded, record.count)
                    }
                    state.recording.changed.insert(record.key)
                }
            }
            return (asked, state.recording.askElsewhere)
        }
        guard let ask, !sessions.isEmpty else { return }
        ask(Self.question(elsewhere, for: sessions)) { [self] in learn($0, of: elsewhere, for: sessions) }
    }

    package var hasChanged: Bool { state.withLock { !$0.recording.changed.isEmpty } }

    /// Whether a member's join can be answered, as far as that goes.
    ///
    /// - Parameter waited: for how long it has waited for that, in milliseconds.
    func isRecorded(_ session: LiveSession, after waited: Int64 = 0) -> Bool {
        state.withLock { state in
            guard state.recording.isKept else { return true }
            if waited >= Self.longestQuestion, session.elsewhere == nil { session.elsewhere = session.presumed }
            guard session.elsewhere != nil || !state.recording.looksElsewhere else { return false }
            // Of those that were to be written with it, some may have gone since.
            guard let bucket = state.buckets[session.key],
                bucket.recorded >= min(session.needed, Self.count(of: session.key, state)), !bucket.isWrittenAsLost
            else { return false }
            return bucket.place?.covers(session.origin.point, proven: state.recording.proven) ?? false
        }
    }

    /// A session takes too long to be written. Where the list counts, that is to end first.
    ///
    /// - Returns: whether the join may be answered all the same: not where another hub may have its client, and nobody knows which.
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

    /// What `withdraw` has led to; not successful also where nobody knows.
    package func withdrawn(successfully: Bool) {
        state.withLock { state in
            state.recording.isWithdrawing = false
            guard successfully else { return }
            state.recording.mayCount = false
            state.recording.withdrawals += 1
        }
    }

    /// How often the claim that the list is complete was withdrawn. To be asked before the turn is read that the next claim
    /// is for.
    package var withdrawals: Int { state.withLock { $0.recording.withdrawals } }

    /// The list is about to be called complete, for a turn that was read after so many withdrawals.
    ///
    /// - Returns: whether that would be true. From then on the list may count.
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

    /// The key's sessions, or where they stand, changed.
    static func note(_ key: RecoveryKey, needing session: LiveSession? = nil, _ state: inout State) {
        weigh(key, &state)
        guard state.recording.isKept else {
            if state.buckets[key]?.isEmpty == true { drop(key, &state) }
            return
        }
        let count = count(of: key, state)
        let recorded = state.buckets[key]?.recorded ?? 0
        session?.needed = count
        // Where the number stays the same, it is written once more for what it tells of other hubs.
        let isSought = state.recording.looksElsewhere && session?.isSought ?? false
        let isPlaced = isPlaced(key, session, state)
        if count == recorded, isPlaced, !isSought {
            // Another one may wait for what a write tells of other hubs.
            if session != nil || !state.recording.looksElsewhere { state.recording.changed.remove(key) }
        } else {
            state.recording.changed.insert(key)
        }
        if count > recorded || !isPlaced || isSought, session != nil, !state.recording.isAwaited {
            state.recording.isAwaited = true
            state.recording.whenAwaited()
        }
        if count == 0, recorded == 0, state.buckets[key]?.isEmpty == true { drop(key, &state) }
    }
}
