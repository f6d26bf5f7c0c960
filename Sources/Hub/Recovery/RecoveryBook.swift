import Synchronization

/// Who may have missed row changes, and since when: for clients that know nothing of cursors. One for all loops.
///
/// A membership that ends without a good-bye stays behind as a session, for the recovery window. Sessions are marks, not
/// buffers: what was missed is read from the outbox.
///
/// **Never less.** Nothing tells which of a user's clients joins. So a join is owed what any session lacks that may be its
/// own: each that has ended, and each live one whose socket does not answer when it is asked at that moment. It gets the
/// earliest point of them all. Who turns out to be somebody else is sent some changes that it did not miss: at least once.
///
/// **Seldom twice.** A client that was certainly here before (`LiveSession.Evidence`) came for one of the sessions
/// that it was brought something for, so that one of them less has to be kept. Which one nobody knows; if it is always
/// the latest, then for every client that is still away a session is left that lies no later than its own. Where clients
/// begin their refs anew, only a sign-in that names the device tells as much (`RecoveryClaim.counts`).
///
/// Safe from any thread: all of it is behind one lock, which is held for a look-up.
package final class RecoveryBook: Sendable {
    struct Ended {
        var standing: RecoveryPosition
        /// Milliseconds, by the book's clock.
        var until: Int64
        /// Of the last process's sessions and those of clients without one nobody knows the socket.
        let lifeline: Lifeline?
        /// It stands for many that nobody counted, so that none of them less has to be kept.
        var isMany = false
        var claims: [RecoveryClaim] = []

        var isTaken: Bool { !isMany && claims.contains { $0.counts } }
    }

    struct Bucket {
        var live: [LiveSession] = []
        /// Oldest end first.
        var ended: [Ended] = []
        /// How many sessions are written down.
        var recorded = 0
        /// The last of the moments at which some of them are forgotten (`State.ends`).
        var lastEnd = Int64.min

        var isEmpty: Bool { live.isEmpty && ended.isEmpty }
    }

    struct State {
        var buckets: [RecoveryKey: Bucket] = [:]
        /// By which `until` counts, here and elsewhere.
        var clock: RecoveryClock
        /// In the order of their end, for forgetting them; one for each key and moment.
        var ends: [(key: RecoveryKey, until: Int64)] = []
        var firstEnd = 0
        /// When the book was last told the time.
        var now = Int64.min
        /// Until when those come back whom the hub's last process served, by the book's clock; nil before the first join.
        var restartUntil: Int64?
        /// Whom the last process served; nil where that is not known.
        var restored: [RecoveryKey: Int]?
        var recording = SessionRecording()
    }

    /// Sessions kept for one key; anonymous clients share one. Of more, the earliest points stay.
    private static let mostEnded = 64
    /// Live sessions of one user in one channel that are looked at.
    private static let mostLive = 64
    /// Of more none is asked whether it lives.
    private static let mostAsked = 16
    /// Of so many sessions it is written down that they are many.
    static let many = 32

    /// Of so many keys sessions are kept for as long as the feed is away. With more of them the window runs on, so that
    /// an outage of days does not take all memory.
    private let mostHeld: Int

    let window: Int64
    let state: Mutex<State>
    private let moments = Atomic<Int>(0)

    /// - Parameters:
    ///   - window: how long a session waits to be taken over, in milliseconds; with 0 there are none.
    ///   - isFeedReady: false where `feed(isReady:at:)` will say when the window begins to run.
    ///   - mostHeld: of so many keys sessions are kept for as long as the feed is away.
    package init(window: Int64 = 120_000, isFeedReady: Bool = true, mostHeld: Int = 1_000_000) {
        self.window = window
        self.mostHeld = mostHeld
        state = Mutex(State(clock: RecoveryClock(isRunning: isFeedReady)))
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

    // MARK: Joins

    /// Registers a member whose join came this moment.
    ///
    /// - Parameters:
    ///   - evidence: whether its client was here before.
    ///   - here: how far the loop is.
    /// - Returns: the session, which is to be settled, and those that may be dead ones of the same client: whether they
    ///   live is to be asked first.
    func enter(
        _ key: RecoveryKey, evidence: LiveSession.Evidence, lifeline: Lifeline, here: LoopPosition, at now: HubTime
    ) -> (LiveSession, doubts: [LiveSession]) {
        state.withLock { state in
            Self.forget(&state, at: now.monotonic)
            Self.beginRestart(&state, at: now.monotonic, window)
            let session = LiveSession(
                key: key, evidence: evidence, lifeline: lifeline, from: .mark(here.mark), at: now,
                moment: moment())
            // Of a client that was here before, the one that is its own is to be told from all others.
            let doubts = Self.suspects(of: session, state).filter {
                evidence != .none || !here.isReached($0.standing(at: now.monotonic))
            }
            Self.add(session, &state)
            return (session, doubts.count <= Self.mostAsked && window > 0 ? doubts : [])
        }
    }

    /// Whether it is known of a session that may be a dead one of the joining client what it is.
    func isDecided(_ doubt: LiveSession, for session: LiveSession) -> Bool {
        doubt.wasAlive(after: session.moment) || state.withLock { _ in doubt.hasEnded }
    }

    /// Whether a member that lacked nothing may have been there before, and so misses what comes before it has its seat.
    func mayMissMore(_ session: LiveSession) -> Bool { state.withLock { _ in session.mayMissMore } }

    /// Finds out where a member has to recover from, once those that may be its own were asked whether they live.
    ///
    /// - Returns: nil if nothing can have been missed.
    func settle(_ session: LiveSession, here: LoopPosition, at now: HubTime) -> RecoveryPoint? {
        state.withLock { state in
            defer { Self.note(session.key, needing: session, &state) }
            session.isSettled = true
            guard window > 0 else { return nil }
            var found = Self.found(for: session, here, &state)
            // Nobody knows whom the last process served, so that anybody may have been there.
            if let until = state.restartUntil, state.clock.time(at: now.monotonic) < until, state.restored == nil {
                found =
                    found?.point == .restart || found?.point.isEarlier(than: .restart) == true
                    ? found.map { RecoveryPosition(point: $0.point) } : RecoveryPosition(point: .restart)
            }
            session.settles(at: found ?? RecoveryPosition(point: .mark(here.mark)), hadMissed: found != nil)
            return found?.exact
        }
    }

    /// Registers a member that says itself where it was, or that is known to stand there.
    func enter(
        _ key: RecoveryKey, evidence: LiveSession.Evidence, lifeline: Lifeline, at standing: RecoveryPosition,
        _ now: HubTime
    )
        -> LiveSession
    {
        state.withLock { state in
            let session = LiveSession(
                key: key, evidence: evidence, lifeline: lifeline, from: standing.point, at: now, moment: moment())
            session.settles(at: standing, hadMissed: false)
            session.isSettled = true
            Self.add(session, &state)
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

    /// The page that it belonged to is gone, so its client never comes back.
    func unload(_ session: LiveSession) {
        state.withLock { state in
            Self.remove(session, &state)
            Self.note(session.key, &state)
        }
    }

    /// The member is gone in any other way.
    func lose(_ session: LiveSession, at now: HubTime) {
        end(session, from: session.standing(at: now.monotonic), at: now)
    }

    /// A join of the same socket took its place: the client had given the first one up, who knows when.
    func replace(_ session: LiveSession, at now: HubTime) {
        let isYoung = now.monotonic - session.began < window
        end(session, from: isYoung ? session.origin : session.standing(at: now.monotonic), at: now)
    }

    /// How long a client may ignore what it is sent, in the longest of cases: in milliseconds, as the window.
    var patience: Int64 { window }

    func remove(_ session: LiveSession) {
        state.withLock {
            Self.remove(session, &$0)
            Self.note(session.key, &$0)
        }
    }

    private func end(_ session: LiveSession, from standing: RecoveryPosition, at now: HubTime) {
        // Where it was not found out what it missed, a client that was here before has its session of before still.
        guard window > 0, session.isSettled || session.evidence != .refs else { return remove(session) }
        state.withLock { state in
            Self.remove(session, &state)
            Self.forget(&state, at: now.monotonic)
            defer { Self.note(session.key, &state) }
            // Who joined while it answered did not come for it.
            let claims = session.claims.filter { !session.wasAlive(after: $0.session.moment) }
            if state.ends.count - state.firstEnd >= mostHeld { state.clock.start(at: now.monotonic) }
            let until = state.clock.time(at: now.monotonic) + window
            guard !claims.contains(where: \.isCertain) else {
                Self.prolong(session.key, to: until, &state)
                return Self.expectEnd(of: session.key, until, &state)
            }
            state.buckets[session.key, default: Bucket()].ended.append(
                Ended(standing: standing, until: until, lifeline: session.lifeline, claims: claims))
            Self.expectEnd(of: session.key, until, &state)
            Self.thin(session.key, &state)
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
            func consider(_ standing: RecoveryPosition) {
                // What has no mark yet lies before all of them.
                let mark = if case .mark(let mark) = standing.point { mark } else { 0 }
                oldest = min(oldest ?? mark, mark)
            }
            for bucket in state.buckets.values {
                for session in bucket.live { consider(session.standing(at: state.now)) }
                for ended in bucket.ended { consider(ended.standing) }
            }
            return oldest
        }
    }

    /// To be called once a second or so.
    package func forget(at now: HubTime) {
        state.withLock { Self.forget(&$0, at: now.monotonic) }
    }

    /// How many keys are to be looked at later, because sessions of theirs run out then; some count twice.
    package var expectedEnds: Int { state.withLock { $0.ends.count - $0.firstEnd } }

    /// How many sessions wait to be taken over.
    package var endedSessions: Int {
        state.withLock { state in state.buckets.values.reduce(0) { $0 + $1.ended.count } }
    }

    // MARK: Under the lock

    /// Live sessions that may be dead ones of the client that joins.
    private static func suspects(of session: LiveSession, _ state: State) -> [LiveSession] {
        guard session.key.hasSubject, let live = state.buckets[session.key]?.live else { return [] }
        return live.prefix(mostLive).filter { other in
            // Who joined later is no socket of before.
            other.moment < session.moment && other.isSettled && other.lifeline !== session.lifeline
                && !other.wasAlive(after: session.moment)
                && !other.claims.contains { $0.isCertain && !other.wasAlive(after: $0.session.moment) }
        }
    }

    /// What the joining client may have to be brought, and what is said by that of the sessions that are kept.
    private static func found(for session: LiveSession, _ here: LoopPosition, _ state: inout State) -> RecoveryPosition?
    {
        let key = session.key
        let ended = state.buckets[key]?.ended ?? []
        // Joins of one socket are one client's.
        let own = ended.filter { $0.lifeline === session.lifeline }
        if !own.isEmpty {
            state.buckets[key]?.ended.removeAll { $0.lifeline === session.lifeline }
            return earliest(of: own.map(\.standing))
        }
        let free = ended.indices.filter { !ended[$0].isTaken }
        let suspects = suspects(of: session, state)
        let positions = free.map { ended[$0].standing } + suspects.map { $0.standing(at: session.began) }
        if session.evidence != .none, suspects.count <= mostAsked {
            let claim = RecoveryClaim(session: session, isCertain: session.evidence == .refs)
            let latest = positions.indices.max { positions[$0].point.isEarlier(than: positions[$1].point) }
            if let latest, latest >= free.count {
                suspects[latest - free.count].claims.append(claim)
            } else if let latest, !ended[free[latest]].isMany {
                if claim.isCertain {
                    state.buckets[key]?.ended.remove(at: free[latest])
                    prolong(key, to: ended[free[latest]].until, &state)
                } else {
                    state.buckets[key]?.ended[free[latest]].claims.append(claim)
                }
            }
            if positions.count > 1 {
                // What is left may stand for another of them, which lies no earlier, but was on no way of its own.
                for index in state.buckets[key]?.ended.indices ?? 0..<0 {
                    state.buckets[key]?.ended[index].standing.partway = nil
                }
                for suspect in suspects { suspect.forgetsTheWay() }
            }
        }
        let lacking = positions.enumerated().filter { $0.offset < free.count || !here.isReached($0.element) }
        session.mayMissMore = lacking.count < positions.count
        return earliest(of: lacking.map(\.element))
    }

    /// One session less is kept. Any of the others may stand for it, so that they are kept for as long.
    private static func prolong(_ key: RecoveryKey, to until: Int64, _ state: inout State) {
        for index in state.buckets[key]?.ended.indices ?? 0..<0 {
            if let known = state.buckets[key]?.ended[index].until, known < until {
                state.buckets[key]?.ended[index].until = until
            }
        }
    }

    /// Some of the key's sessions are to be forgotten then. While the clock stands it is always the same moment, however
    /// often a client tries to join.
    private static func expectEnd(of key: RecoveryKey, _ until: Int64, _ state: inout State) {
        guard let last = state.buckets[key]?.lastEnd, last != until else { return }
        state.buckets[key]?.lastEnd = until
        state.ends.append((key, until))
    }

    private static func earliest(of standings: [RecoveryPosition]) -> RecoveryPosition? {
        guard standings.count > 1 else { return standings.first }
        return standings.map(\.point).min { $0.isEarlier(than: $1) }.map { RecoveryPosition(point: $0) }
    }

    private static func beginRestart(_ state: inout State, at now: Int64, _ window: Int64) {
        guard state.restartUntil == nil else { return }
        let until = state.clock.time(at: now) + window
        state.restartUntil = until
        guard let restored = state.restored, window > 0 else { return }
        for (key, count) in restored {
            let ended = Ended(
                standing: RecoveryPosition(point: .restart), until: until, lifeline: nil, isMany: count >= many)
            let copies = count >= many ? 1 : count
            state.buckets[key, default: Bucket()].ended += Array(repeating: ended, count: copies)
            expectEnd(of: key, until, &state)
        }
        state.restored = [:]
    }

    private static func add(_ session: LiveSession, _ state: inout State) {
        session.place = state.buckets[session.key]?.live.count ?? 0
        state.buckets[session.key, default: Bucket()].live.append(session)
    }

    private static func remove(_ session: LiveSession, _ state: inout State) {
        session.hasEnded = true
        guard var bucket = state.buckets[session.key], session.place < bucket.live.count,
            bucket.live[session.place] === session
        else { return }
        state.buckets[session.key] = nil
        let last = bucket.live.removeLast()
        if last !== session {
            last.place = session.place
            bucket.live[session.place] = last
        }
        state.buckets[session.key] = bucket
    }

    private static func thin(_ key: RecoveryKey, _ state: inout State) {
        guard let ended = state.buckets[key]?.ended, ended.count > mostEnded else { return }
        let latest = ended.indices.reduce(0) {
            ended[$0].standing.point.isEarlier(than: ended[$1].standing.point) ? $1 : $0
        }
        state.buckets[key]?.ended.remove(at: latest)
    }

    private static func forget(_ state: inout State, at now: Int64) {
        state.now = max(state.now, now)
        let time = state.clock.time(at: now)
        while state.firstEnd < state.ends.count, state.ends[state.firstEnd].until <= time {
            let key = state.ends[state.firstEnd].key
            state.firstEnd += 1
            guard state.buckets[key] != nil else { continue }
            state.buckets[key]?.ended.removeAll { $0.until <= time }
            note(key, &state)
        }
        if state.firstEnd > 1024, state.firstEnd * 2 > state.ends.count {
            state.ends.removeFirst(state.firstEnd)
            state.firstEnd = 0
        }
    }
}

/// How far a loop has handed on.
struct LoopPosition: Equatable {
    /// All up to here.
    let mark: Int
    /// And something that came since.
    let isPastMark: Bool
    /// Whether all that was handed on since the mark and concerns the member's group came by here.
    let isHeard: Bool

    /// Whether nothing was handed on here that somebody lacks who stands there.
    func isReached(_ standing: RecoveryPosition) -> Bool {
        guard case .mark(let other) = standing.point, standing.partway == nil else { return false }
        return other >= mark && !isPastMark && isHeard
    }
}
