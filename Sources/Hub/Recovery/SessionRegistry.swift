import Synchronization

/// Clients that may have missed row changes, and since when: for clients that do not use cursors. Shared by all loops.
///
/// A membership that ends without a good-bye stays behind as a session, for the recovery window. Sessions are marks,
/// not buffers: missed changes are read from the outbox.
///
/// `SessionBucket` decides what each is owed.
///
/// Safe from any thread: everything is behind one lock, which is held for a look-up.
package final class SessionRegistry: Sendable {
    struct Bucket {
        var sessions = SessionBucket<LiveSession>()
        /// The stored number of sessions.
        var recorded = 0
        /// The stored place; nil if it has to be written.
        var place: Place?
        /// The stored state says, or may say, that the only session was lost.
        var isWrittenAsLost = false
        /// For a crowd, a position no later than any settled session's; nil before it was determined
        /// (`surveyProgress`).
        var lowest: RecoveryPoint?
        /// The last of the times at which some of the sessions expire (`State.ends`).
        var lastEnd = Int64.min
        /// The user whose share the sessions count towards, and how many they count as (`SessionShares`); zero if they
        /// do not count.
        var user: UInt64 = 0
        var size = 0

        var isEmpty: Bool { sessions.isEmpty }
    }

    struct State {
        var buckets: [RecoveryKey: Bucket] = [:]
        /// The clock for `until`, here and elsewhere.
        var clock: RecoveryClock
        /// The times at which sessions expire, in order; one for each key and time.
        var ends: [(key: RecoveryKey, until: Int64)] = []
        var firstEnd = 0
        /// The times at which positions kept for users expire (`SessionShares`): a few, later than those of sessions
        /// yet to come.
        var userEnds: [Int64: [RecoveryKey]] = [:]
        /// The last time that the registry was told.
        var now = Int64.min
        /// When clients of the hub's last process must be back, on the registry's clock; nil before the first join.
        var restartUntil: Int64?
        /// Sessions of the last process; nil if unknown.
        var restored: [RecoveryKey: Restored]?
        var recording = SessionRecording()
        var shares: SessionShares
        var givenWay = 0
        var late = LateClients<RecoveryKey>(most: 10_000)
    }

    /// Above this count, only "many" is stored.
    static let many = 32

    /// The maximum number of keys whose sessions are kept for as long as the feed is away. With more of them the window
    /// runs on, so that an outage of days does not use up all memory.
    private let mostHeld: Int
    /// Milliseconds without any proof after which a session that lags behind others no longer follows
    /// (`surveyProgress`).
    let longestProof: Int64

    let window: Int64
    let state: Mutex<State>
    private let moments = Atomic<Int>(0)
    private let handedOn = Atomic<Int>(0)

    /// - Parameters:
    ///   - window: how long a session waits to be taken over, in milliseconds; with 0 there are none.
    ///   - isFeedReady: false if `feedChanged(isReady:at:)` will start the window.
    ///   - mostHeld: the maximum number of keys whose sessions are kept for as long as the feed is away.
    ///   - longestProof: in milliseconds: a ping every 5 s, spread over one, its answer, and some slack.
    ///   - mostOfUser: the maximum number of sessions kept for one user.
    package init(
        window: Int64 = 120_000, isFeedReady: Bool = true, mostHeld: Int = 1_000_000, longestProof: Int64 = 8_000,
        mostOfUser: Int = 1_000
    ) {
        self.window = window
        self.longestProof = longestProof
        self.mostHeld = mostHeld
        state = Mutex(
            State(clock: RecoveryClock(isRunning: isFeedReady), shares: SessionShares(most: mostOfUser)))
    }

    /// Handles a change in whether row changes flow. While they do not, no session expires. Every loop calls this in
    /// its own time.
    package func feedChanged(isReady: Bool, at now: HubTime) {
        state.withLock { state in
            if isReady {
                state.clock.start(at: now.monotonic)
            } else {
                Self.removeExpired(&state, at: now.monotonic)
                state.clock.stop(at: now.monotonic)
            }
        }
    }

    /// Counts pings and joins to order them; clocks are too coarse for that.
    func moment() -> Int { moments.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue }

    /// Records that the feed has passed on everything up to a mark; loops that it does not concern learn of it later.
    package func hasHandedOn(upTo mark: Int) { handedOn.store(mark, ordering: .sequentiallyConsistent) }

    // MARK: Joins

    /// Registers a member whose join has just arrived.
    ///
    /// - Parameter here: the loop's position.
    /// - Returns: the session, which must be settled, and those that may be dead sockets of the same client and must be
    ///   asked for a sign of life first.
    func openSession(_ key: RecoveryKey, _ trace: ClientTrace, here: LoopPosition, at now: HubTime) -> (
        LiveSession, doubts: [ClientTrace]
    ) {
        state.withLock { state in
            Self.removeExpired(&state, at: now.monotonic)
            Self.beginRestart(&state, at: now.monotonic, window)
            let session = LiveSession(key: key, trace: trace, from: .mark(here.mark))
            var doubts: [ClientTrace] = []
            if window > 0, let sessions = state.buckets[key]?.sessions {
                doubts = sessions.doubts(of: trace, hasUser: key.hasSubject) {
                    !here.isReached($0.position(at: now.monotonic))
                }
            }
            Self.addSession(session, &state)
            return (session, doubts)
        }
    }

    /// Whether a member that lacked nothing may have been there before, and so misses what comes before its live
    /// changes.
    func mayMissMore(_ session: LiveSession) -> Bool { state.withLock { _ in session.mayMissMore } }

    /// Determines the point a member must recover from, once suspect sockets were asked for a sign of life.
    ///
    /// - Parameter before: a position that it must start at or before in any case.
    /// - Returns: nil if nothing can have been missed.
    func settleSession(
        _ session: LiveSession, here: LoopPosition, noLaterThan before: RecoveryPoint? = nil, at now: HubTime
    ) -> RecoveryPoint? {
        state.withLock { state in
            defer { Self.recordChange(session.key, needing: session, &state) }
            session.trace.isSettled = true
            guard window > 0 else { return nil }
            var found = Self.takeOver(for: session, here, &state, at: now.monotonic)
            defer { session.cameFromElsewhere = session.cameFromElsewhere && found == nil }
            let places = Self.places(ofUserOf: session, state)
            if !places.isEmpty { found = .earliest(of: places + (found.map { [$0] } ?? [])) }
            // The last process's sessions are unknown, so that any client may have been there.
            if let until = state.restartUntil, state.clock.time(at: now.monotonic) < until, state.restored == nil {
                found = .earliest(of: [RecoveryPosition(point: .restart)] + (found.map { [$0] } ?? []))
            }
            // A newcomer does not lack what was passed on before it came, whether this loop has learned of that or not.
            let mark =
                session.mayMissMore ? here.mark : max(here.mark, handedOn.load(ordering: .sequentiallyConsistent))
            let points = [found?.point ?? .mark(mark)] + (before.map { [$0] } ?? [])
            let whole = RecoveryPoint.earliest(of: points).map { RecoveryPosition(point: $0) }
            let position = before == nil ? found ?? whole : whole
            session.settleStart(at: position ?? RecoveryPosition(point: .mark(mark)), hadMissed: found != nil)
            Self.noteLowest(session, &state)
            return found?.exact
        }
    }

    /// Registers a member that states its own position, or whose position is known.
    func openSession(_ key: RecoveryKey, _ trace: ClientTrace, at position: RecoveryPosition) -> LiveSession {
        state.withLock { state in
            let session = LiveSession(key: key, trace: trace, from: position.point)
            session.settleStart(at: position, hadMissed: false)
            trace.isSettled = true
            Self.addSession(session, &state)
            Self.noteLowest(session, &state)
            Self.recordChange(key, needing: session, &state)
            return session
        }
    }

    // MARK: Ends

    /// Ends the session of a member that left on purpose: nothing stays behind, unless it left because its join took
    /// too long.
    func leaveSession(_ session: LiveSession, at now: HubTime) {
        guard session.isConfirmed(at: now.monotonic) else { return endSession(session, from: session.origin, at: now) }
        remove(session)
    }

    /// Removes a session without a trace, because another takes its place.
    func remove(_ session: LiveSession) {
        state.withLock { state in
            state.buckets[session.key]?.sessions.remove(session)
            Self.recordChange(session.key, &state)
        }
    }

    /// Ends the session of a member that is gone in any other way.
    func loseSession(_ session: LiveSession, at now: HubTime) {
        endSession(session, from: session.position(at: now.monotonic), at: now)
    }

    /// Ends a session that a join of the same socket replaced: the client had given the first join up at an unknown
    /// time.
    func replaceSession(_ session: LiveSession, at now: HubTime) {
        let isYoung = now.monotonic - session.trace.began < window
        endSession(session, from: isYoung ? session.origin : session.position(at: now.monotonic), at: now)
    }

    /// The longest time that a client may ignore what it is sent: in milliseconds, like the window.
    var patience: Int64 { window }

    /// Ends a session whose client announced that it was going: the next client is a different one unless its refs
    /// continue after this one.
    func unloadSession(_ session: LiveSession, goneAt ref: Int, at now: HubTime) {
        endSession(session, from: session.position(at: now.monotonic), at: now, goneAt: ref)
    }

    private func endSession(
        _ session: LiveSession, from position: RecoveryPosition, at now: HubTime, goneAt ref: Int? = nil
    ) {
        // If it was never settled, a client that was here before still has its earlier session.
        guard window > 0, session.trace.isSettled || session.trace.evidence != .refs else { return remove(session) }
        state.withLock { state in
            Self.removeExpired(&state, at: now.monotonic)
            if state.ends.count - state.firstEnd >= mostHeld { state.clock.start(at: now.monotonic) }
            let until = state.clock.time(at: now.monotonic) + window
            state.buckets[session.key]?.sessions.loseSession(
                session, at: position, until: until, goneAt: ref, lostAt: now.monotonic)
            if state.buckets[session.key]?.user == 0 { state.buckets[session.key]?.user = session.key.user }
            Self.expectEnd(of: session.key, until, &state)
            Self.recordChange(session.key, &state)
            Self.boundShare(session.key, window, &state)
        }
    }

    /// Records that no process of this hub came before this one, so that the first clients missed nothing.
    package func nobodyIsFromBefore() {
        state.withLock {
            $0.restartUntil = .min
            $0.restored = [:]
        }
    }

    /// Returns the earliest mark that any client may still recover from; nil if there is none.
    package func oldestMark() -> Int? {
        state.withLock { state in
            var oldest: Int?
            func considerPosition(_ position: RecoveryPosition) {
                // A position without a mark is before all of them.
                let mark = if case .mark(let mark) = position.point { mark } else { 0 }
                oldest = min(oldest ?? mark, mark)
            }
            for bucket in state.buckets.values {
                for session in bucket.sessions.live { considerPosition(session.position(at: state.now)) }
                for ended in bucket.sessions.ended { considerPosition(ended.position) }
            }
            return oldest
        }
    }

    /// Call about once a second.
    package func removeExpired(at now: HubTime) {
        state.withLock { Self.removeExpired(&$0, at: now.monotonic) }
    }

    /// The number of keys to check later because sessions of theirs expire then; some count twice.
    package var expectedEnds: Int {
        state.withLock { state in
            state.ends.count - state.firstEnd + state.userEnds.values.reduce(0) { $0 + $1.count }
        }
    }

    /// The number of sessions waiting to be taken over.
    package var endedSessions: Int {
        state.withLock { state in state.buckets.values.reduce(0) { $0 + $1.sessions.ended.count } }
    }

    // MARK: Under the lock

    /// Returns the position from which the joining client may have to be sent changes.
    private static func takeOver(
        for session: LiveSession, _ here: LoopPosition, _ state: inout State, at now: Int64
    ) -> RecoveryPosition? {
        let trace = session.trace
        let lowest = Self.lowest(ofCrowd: session.key, &state, at: now).map { RecoveryPosition(point: $0) }
        let owed = state.buckets[session.key]?.sessions.takeOver(
            for: trace, hasUser: session.key.hasSubject, lowest: lowest
        ) {
            $0.position(at: trace.began)
        }
        session.cameFromElsewhere = trace.evidence == .refs && owed?.isNothing ?? true
        guard let owed else { return nil }
        let lacking = owed.live.filter { !here.isReached($0) }
        session.mayMissMore = lacking.count < owed.live.count
        return .earliest(of: owed.ended + lacking)
    }

    /// Schedules the expiry of some of the key's sessions. While the clock stands still it is always the same time,
    /// however often a client tries to join.
    static func expectEnd(of key: RecoveryKey, _ until: Int64, _ state: inout State) {
        guard let last = state.buckets[key]?.lastEnd, last != until else { return }
        state.buckets[key]?.lastEnd = until
        state.ends.append((key, until))
    }

    private static func addSession(_ session: LiveSession, _ state: inout State) {
        let late = state.late.takeClients(session.key)
        state.buckets[session.key, default: Bucket()].sessions.addSession(session)
        if !late.isEmpty { state.buckets[session.key]?.sessions.addOverdue(late) }
    }

    /// Drops a key without live or ended sessions.
    static func dropKey(_ key: RecoveryKey, _ state: inout State) {
        guard let bucket = state.buckets.removeValue(forKey: key), !key.isOfUser else { return }
        state.late.addClients(bucket.sessions.overdue, of: key)
    }

    private static func beginRestart(_ state: inout State, at now: Int64, _ window: Int64) {
        guard state.restartUntil == nil else { return }
        let until = state.clock.time(at: now) + window
        state.restartUntil = until
        guard let restored = state.restored, window > 0 else { return }
        for (key, left) in restored {
            let ended = SessionBucket<LiveSession>.Ended(
                position: RecoveryPosition(point: left.point), until: until, acknowledged: nil,
                isMany: left.count >= many, lostAt: left.lostAt)
            let copies = left.count >= many ? 1 : left.count
            state.buckets[key, default: Bucket()].sessions.addEnded(Array(repeating: ended, count: copies))
            expectEnd(of: key, until, &state)
        }
        state.restored = [:]
    }

    private static func removeExpired(_ state: inout State, at now: Int64) {
        state.now = max(state.now, now)
        let time = state.clock.time(at: now)
        while state.firstEnd < state.ends.count, state.ends[state.firstEnd].until <= time {
            let key = state.ends[state.firstEnd].key
            state.firstEnd += 1
            removeExpired(key, until: time, &state)
        }
        for end in state.userEnds.keys where end <= time {
            for key in state.userEnds.removeValue(forKey: end) ?? [] { removeExpired(key, until: time, &state) }
        }
        if state.firstEnd > 1024, state.firstEnd * 2 > state.ends.count {
            state.ends.removeFirst(state.firstEnd)
            state.firstEnd = 0
        }
    }

    private static func removeExpired(_ key: RecoveryKey, until time: Int64, _ state: inout State) {
        guard state.buckets[key] != nil else { return }
        state.buckets[key]?.sessions.removeExpired(until: time)
        recordChange(key, &state)
    }
}

/// The clock of the recovery window, which stands still while the feed is not ready.
///
/// Joins for row changes are refused then, so that no client can come back, and no client's time may run out. A value,
/// kept under the registry's lock.
struct RecoveryClock {
    /// When it stopped, in monotonic milliseconds; nil while it runs.
    private var stopped: Int64?
    /// The total time it stood still before, in milliseconds.
    private var stood: Int64 = 0

    /// - Parameter isRunning: false before the feed is ready for the first time.
    init(isRunning: Bool) { stopped = isRunning ? nil : 0 }

    /// Returns its time, in milliseconds, when monotonic time is `now`.
    func time(at now: Int64) -> Int64 { (stopped ?? now) - stood }

    mutating func stop(at now: Int64) {
        if stopped == nil { stopped = now }
    }

    mutating func start(at now: Int64) {
        guard let stopped else { return }
        // Loops read the time one after the other.
        stood += max(0, now - stopped)
        self.stopped = nil
    }
}
