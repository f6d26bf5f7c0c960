import Synchronization

/// Who may have missed row changes, and since when: for clients that know nothing of cursors. One for all loops.
///
/// A membership that ends without a good-bye stays behind as a session, for the recovery window. Sessions are marks, not
/// buffers: what was missed is read from the outbox.
///
/// Who is owed what is in `SessionBucket`.
///
/// Safe from any thread: all of it is behind one lock, which is held for a look-up.
package final class SessionRegistry: Sendable {
    struct Bucket {
        var sessions = SessionBucket<LiveSession>()
        /// How many sessions are written down.
        var recorded = 0
        /// Where they are written down to stand; nil where that is to be written.
        var place: Place?
        /// What is written down says that its only session was lost, or may say so.
        var isWrittenAsLost = false
        /// Of a crowd, no later than where any of those stands who have settled; nil where that was not looked for (`survey`).
        var lowest: RecoveryPoint?
        /// The last of the moments at which some of them are forgotten (`State.ends`).
        var lastEnd = Int64.min
        /// As whose sessions they are counted, and as how many (`SessionShares`); zero where they are not.
        var user: UInt64 = 0
        var size = 0

        var isEmpty: Bool { sessions.isEmpty }
    }

    struct State {
        var buckets: [RecoveryKey: Bucket] = [:]
        /// By which `until` counts, here and elsewhere.
        var clock: RecoveryClock
        /// In the order of their end, for forgetting them; one for each key and moment.
        var ends: [(key: RecoveryKey, until: Int64)] = []
        var firstEnd = 0
        /// Whose users' places are forgotten when (`SessionShares`): a few moments, later than those of the sessions that follow.
        var userEnds: [Int64: [RecoveryKey]] = [:]
        /// When the registry was last told the time.
        var now = Int64.min
        /// Until when those come back whom the hub's last process served, by the registry's clock; nil before the first join.
        var restartUntil: Int64?
        /// Whom the last process served; nil where that is not known.
        var restored: [RecoveryKey: Restored]?
        var recording = SessionRecording()
        var shares: SessionShares
        var givenWay = 0
        var late = LateClients<RecoveryKey>(most: 10_000)
    }

    /// Of so many sessions it is written down that they are many.
    static let many = 32

    /// Of so many keys sessions are kept for as long as the feed is away. With more of them the window runs on, so that
    /// an outage of days does not take all memory.
    private let mostHeld: Int
    /// Milliseconds after which who has proven nothing of what others have proven does not follow any more (`survey`).
    let longestProof: Int64

    let window: Int64
    let state: Mutex<State>
    private let moments = Atomic<Int>(0)
    private let handedOn = Atomic<Int>(0)

    /// - Parameters:
    ///   - window: how long a session waits to be taken over, in milliseconds; with 0 there are none.
    ///   - isFeedReady: false where `feed(isReady:at:)` will say when the window begins to run.
    ///   - mostHeld: of so many keys sessions are kept for as long as the feed is away.
    ///   - longestProof: in milliseconds: a ping every 5 s, spread over one, its answer, and some leisure.
    ///   - mostOfUser: of one user so many sessions are kept.
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

    /// Whether row changes flow. While they do not, no session runs out. Every loop says so, each in its time.
    package func feed(isReady: Bool, at now: HubTime) {
        state.withLock { state in
            if isReady {
                state.clock.start(at: now.monotonic)
            } else {
                Self.forget(&state, at: now.monotonic)
                state.clock.stop(at: now.monotonic)
            }
        }
    }

    /// Counts what sockets are asked and who joins, to tell what came first; clocks are too coarse for it.
    func moment() -> Int { moments.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue }

    /// The feed has handed on all up to a mark; loops that it concerns nothing of hear of it later.
    package func hasHandedOn(upTo mark: Int) { handedOn.store(mark, ordering: .sequentiallyConsistent) }

    // MARK: Joins

    /// Registers a member whose join came this moment.
    ///
    /// - Parameter here: how far the loop is.
    /// - Returns: the session, which is to be settled, and those that may be dead ones of the same client: whether they
    ///   live is to be asked first.
    func enter(_ key: RecoveryKey, _ trace: ClientTrace, here: LoopPosition, at now: HubTime) -> (
        LiveSession, doubts: [ClientTrace]
    ) {
        state.withLock { state in
            Self.forget(&state, at: now.monotonic)
            Self.beginRestart(&state, at: now.monotonic, window)
            let session = LiveSession(key: key, trace: trace, from: .mark(here.mark))
            var doubts: [ClientTrace] = []
            if window > 0, let sessions = state.buckets[key]?.sessions {
                doubts = sessions.doubts(of: trace, hasUser: key.hasSubject) {
                    !here.isReached($0.position(at: now.monotonic))
                }
            }
            Self.add(session, &state)
            return (session, doubts)
        }
    }

    /// Whether a member that lacked nothing may have been there before, and so misses what comes before its changes come live.
    func mayMissMore(_ session: LiveSession) -> Bool { state.withLock { _ in session.mayMissMore } }

    /// Finds out where a member has to recover from, once those that may be its own were asked whether they live.
    ///
    /// - Parameter before: where it stands in any case.
    /// - Returns: nil if nothing can have been missed.
    func settle(
        _ session: LiveSession, here: LoopPosition, noLaterThan before: RecoveryPoint? = nil, at now: HubTime
    ) -> RecoveryPoint? {
        state.withLock { state in
            defer { Self.note(session.key, needing: session, &state) }
            session.trace.isSettled = true
            guard window > 0 else { return nil }
            var found = Self.takeOver(for: session, here, &state, at: now.monotonic)
            defer { session.cameFromElsewhere = session.cameFromElsewhere && found == nil }
            let places = Self.places(ofUserOf: session, state)
            if !places.isEmpty { found = .earliest(of: places + (found.map { [$0] } ?? [])) }
            // Nobody knows whom the last process served, so that anybody may have been there.
            if let until = state.restartUntil, state.clock.time(at: now.monotonic) < until, state.restored == nil {
                found = .earliest(of: [RecoveryPosition(point: .restart)] + (found.map { [$0] } ?? []))
            }
            // What was handed on before a newcomer came it does not lack, whether this loop has heard of that or not.
            let mark =
                session.mayMissMore ? here.mark : max(here.mark, handedOn.load(ordering: .sequentiallyConsistent))
            let points = [found?.point ?? .mark(mark)] + (before.map { [$0] } ?? [])
            let whole = RecoveryPoint.earliest(of: points).map { RecoveryPosition(point: $0) }
            let position = before == nil ? found ?? whole : whole
            session.settles(at: position ?? RecoveryPosition(point: .mark(mark)), hadMissed: found != nil)
            Self.noteLowest(session, &state)
            return found?.exact
        }
    }

    /// Registers a member that says itself where it was, or that is known to stand there.
    func enter(_ key: RecoveryKey, _ trace: ClientTrace, at position: RecoveryPosition) -> LiveSession {
        state.withLock { state in
            let session = LiveSession(key: key, trace: trace, from: position.point)
            session.settles(at: position, hadMissed: false)
            trace.isSettled = true
            Self.add(session, &state)
            Self.noteLowest(session, &state)
            Self.note(key, needing: session, &state)
            return session
        }
    }

    // MARK: Ends

    /// The member left on purpose: nothing stays behind, unless it left because its join took too long.
    func leave(_ session: LiveSession, at now: HubTime) {
        guard session.isConfirmed(at: now.monotonic) else { return end(session, from: session.origin, at: now) }
        remove(session)
    }

    /// Nothing stays behind: somebody else takes its place.
    func remove(_ session: LiveSession) {
        state.withLock { state in
            state.buckets[session.key]?.sessions.remove(session)
            Self.note(session.key, &state)
        }
    }

    /// The member is gone in any other way.
    func lose(_ session: LiveSession, at now: HubTime) {
        end(session, from: session.position(at: now.monotonic), at: now)
    }

    /// A join of the same socket took its place: the client had given the first one up, who knows when.
    func replace(_ session: LiveSession, at now: HubTime) {
        let isYoung = now.monotonic - session.trace.began < window
        end(session, from: isYoung ? session.origin : session.position(at: now.monotonic), at: now)
    }

    /// How long a client may ignore what it is sent, in the longest of cases: in milliseconds, as the window.
    var patience: Int64 { window }

    /// Its client said that it goes: whoever joins next is another, unless its refs go on behind this one.
    func unload(_ session: LiveSession, goneAt ref: Int, at now: HubTime) {
        end(session, from: session.position(at: now.monotonic), at: now, goneAt: ref)
    }

    private func end(
        _ session: LiveSession, from position: RecoveryPosition, at now: HubTime, goneAt ref: Int? = nil
    ) {
        // Where it was not found out what it missed, a client that was here before has its session of before still.
        guard window > 0, session.trace.isSettled || session.trace.evidence != .refs else { return remove(session) }
        state.withLock { state in
            Self.forget(&state, at: now.monotonic)
            if state.ends.count - state.firstEnd >= mostHeld { state.clock.start(at: now.monotonic) }
            let until = state.clock.time(at: now.monotonic) + window
            state.buckets[session.key]?.sessions.lose(
                session, at: position, until: until, goneAt: ref, lostAt: now.monotonic)
            if state.buckets[session.key]?.user == 0 { state.buckets[session.key]?.user = session.key.user }
            Self.expectEnd(of: session.key, until, &state)
            Self.note(session.key, &state)
            Self.bound(session.key, window, &state)
        }
    }

    /// No process of this hub came before this one, so that whoever joins first missed nothing.
    package func nobodyIsFromBefore() {
        state.withLock {
            $0.restartUntil = .min
            $0.restored = [:]
        }
    }

    /// The earliest mark that anybody may yet recover from; nil if there is none.
    package func oldestMark() -> Int? {
        state.withLock { state in
            var oldest: Int?
            func consider(_ position: RecoveryPosition) {
                // What has no mark yet lies before all of them.
                let mark = if case .mark(let mark) = position.point { mark } else { 0 }
                oldest = min(oldest ?? mark, mark)
            }
            for bucket in state.buckets.values {
                for session in bucket.sessions.live { consider(session.position(at: state.now)) }
                for ended in bucket.sessions.ended { consider(ended.position) }
            }
            return oldest
        }
    }

    /// To be called once a second or so.
    package func forget(at now: HubTime) {
        state.withLock { Self.forget(&$0, at: now.monotonic) }
    }

    /// How many keys are to be looked at later, because sessions of theirs run out then; some count twice.
    package var expectedEnds: Int {
        state.withLock { state in
            state.ends.count - state.firstEnd + state.userEnds.values.reduce(0) { $0 + $1.count }
        }
    }

    /// How many sessions wait to be taken over.
    package var endedSessions: Int {
        state.withLock { state in state.buckets.values.reduce(0) { $0 + $1.sessions.ended.count } }
    }

    // MARK: Under the lock

    /// What the joining client may have to be sent.
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

    /// Some of the key's sessions are to be forgotten then. While the clock stands it is always the same moment, however
    /// often a client tries to join.
    static func expectEnd(of key: RecoveryKey, _ until: Int64, _ state: inout State) {
        guard let last = state.buckets[key]?.lastEnd, last != until else { return }
        state.buckets[key]?.lastEnd = until
        state.ends.append((key, until))
    }

    private static func add(_ session: LiveSession, _ state: inout State) {
        let late = state.late.take(session.key)
        state.buckets[session.key, default: Bucket()].sessions.add(session)
        if !late.isEmpty { state.buckets[session.key]?.sessions.areOverdue(late) }
    }

    /// Nobody of the key is here or may come for something.
    static func drop(_ key: RecoveryKey, _ state: inout State) {
        guard let bucket = state.buckets.removeValue(forKey: key), !key.isOfUser else { return }
        state.late.remember(bucket.sessions.overdue, of: key)
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
            state.buckets[key, default: Bucket()].sessions.add(Array(repeating: ended, count: copies))
            expectEnd(of: key, until, &state)
        }
        state.restored = [:]
    }

    private static func forget(_ state: inout State, at now: Int64) {
        state.now = max(state.now, now)
        let time = state.clock.time(at: now)
        while state.firstEnd < state.ends.count, state.ends[state.firstEnd].until <= time {
            let key = state.ends[state.firstEnd].key
            state.firstEnd += 1
            forget(key, until: time, &state)
        }
        for end in state.userEnds.keys where end <= time {
            for key in state.userEnds.removeValue(forKey: end) ?? [] { forget(key, until: time, &state) }
        }
        if state.firstEnd > 1024, state.firstEnd * 2 > state.ends.count {
            state.ends.removeFirst(state.firstEnd)
            state.firstEnd = 0
        }
    }

    private static func forget(_ key: RecoveryKey, until time: Int64, _ state: inout State) {
        guard state.buckets[key] != nil else { return }
        state.buckets[key]?.sessions.forget(until: time)
        note(key, &state)
    }
}

/// The clock of the recovery window, which stands still while the feed is not ready.
///
/// Joins for row changes are refused then, so that nobody can come back, and nobody's time may run out. A value, kept
/// under the registry's lock.
struct RecoveryClock {
    /// Since when it stands, in monotonic milliseconds; nil while it runs.
    private var stopped: Int64?
    /// For how long it stood before, in milliseconds.
    private var stood: Int64 = 0

    /// - Parameter isRunning: false before the feed is ready for the first time.
    init(isRunning: Bool) { stopped = isRunning ? nil : 0 }

    /// Its time, in milliseconds, when monotonic time is `now`.
    func time(at now: Int64) -> Int64 { (stopped ?? now) - stood }

    mutating func stop(at now: Int64) {
        if stopped == nil { stopped = now }
    }

    mutating func start(at now: Int64) {
        guard let stopped else { return }
        // Loops take the time one after the other.
        stood += max(0, now - stopped)
        self.stopped = nil
    }
}
