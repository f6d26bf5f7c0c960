import Synchronization

/// Who may have missed row changes, and since when: for clients that know nothing of cursors. One for all loops.
///
/// A membership that ends without a leave stays behind as a session, for the recovery window; the next join with the same
/// key takes it over. Sessions are marks, not buffers: what was missed is read from the outbox.
///
/// **Never less.** Nothing tells which of a user's sockets comes back. So a join gets the earliest point of all that may
/// be its own, for as long as they are kept; and a live socket whose last changes are not proven may be a dead one whose
/// client is joining this moment. Who turns out to be somebody else is sent some changes that it did not miss: at least
/// once. Only where the token names the sign-in (`session_id`) does a session that somebody came for count no more.
///
/// Safe from any thread: all of it is behind one lock, which is held for a look-up.
package final class RecoveryBook: Sendable {
    private struct Ended {
        let point: RecoveryPoint
        /// Milliseconds, monotonic.
        let until: Int64
        var takers: [Taker] = []

        /// Whether the one that it belonged to is certainly back: nobody else can have come for it.
        ///
        /// As long as a taker lives, a join cannot be its next one, so it may be that of the owner after all.
        func isTaken(before joinNumber: Int) -> Bool {
            takers.contains { $0.isCertain && $0.session.hasEnded && $0.session.joinNumber < joinNumber }
        }
    }

    /// Who was brought what an ended session had missed.
    private struct Taker {
        let session: LiveSession
        /// Sessions that lived for all the hub knew, and may have been this one's own.
        let doubts: [LiveSession]

        /// Whether they lived indeed, so that its own was among the ended ones.
        var isCertain: Bool { doubts.allSatisfy { $0.wasAlive(after: session.began) } }
    }

    private struct Bucket {
        var live: [LiveSession] = []
        /// Oldest end first.
        var ended: [Ended] = []
    }

    private struct State {
        var buckets: [RecoveryKey: Bucket] = [:]
        /// In the order of their end, for forgetting them.
        var ends: [(key: RecoveryKey, until: Int64)] = []
        var firstEnd = 0
        /// When the book was last told the time.
        var now = Int64.min
        /// Until when those come back whom the hub's last process served.
        var restartUntil: Int64?
    }

    /// Sessions kept for one key; anonymous clients share one. Of more, the earliest points stay.
    private static let mostEnded = 64
    /// Live sessions of one user in one channel that are looked at.
    private static let mostLive = 64

    private let window: Int64
    private let state = Mutex(State())

    /// - Parameter window: how long a session waits to be taken over, in milliseconds; with 0 there are none.
    package init(window: Int64 = 120_000) {
        self.window = window
    }

    /// Registers a member and finds out where it has to recover from.
    ///
    /// - Parameters:
    ///   - mark: the loop's own, where a member starts that missed nothing.
    /// - Returns: nil for the point if nothing can have been missed.
    func enter(
        _ key: RecoveryKey, joinNumber: Int, lifeline: Lifeline, mark: Int, at now: HubTime
    ) -> (LiveSession, RecoveryPoint?) {
        state.withLock { state in
            Self.forget(&state, at: now.monotonic)
            let restartUntil = state.restartUntil ?? now.monotonic + window
            state.restartUntil = restartUntil
            let halves = Self.unproven(key, before: joinNumber, state)
            var found = Self.earliest(key, before: joinNumber, state)
            // A session of this process may be that of another device, which came back before this one.
            if now.monotonic < restartUntil { found = .restart }
            if window > 0,
                let half = halves.map({ $0.point(at: now.monotonic) }).min(by: { $0.isEarlier(than: $1) }),
                found.map({ half.isEarlier(than: $0) }) ?? true
            {
                found = half
            }
            let session = LiveSession(
                key: key, joinNumber: joinNumber, lifeline: lifeline, point: found ?? .mark(mark),
                hadMissed: found != nil, at: now)
            Self.take(Taker(session: session, doubts: halves), &state)
            Self.add(session, &state)
            return (session, found)
        }
    }

    /// Registers a member that says itself where it was.
    func enter(
        _ key: RecoveryKey, joinNumber: Int, lifeline: Lifeline, from point: RecoveryPoint, at now: HubTime
    ) -> LiveSession {
        state.withLock { state in
            let session = LiveSession(
                key: key, joinNumber: joinNumber, lifeline: lifeline, point: point, hadMissed: false, at: now)
            Self.add(session, &state)
            return session
        }
    }

    /// The member left on purpose: nothing stays behind, unless it left because its join took too long.
    func leave(_ session: LiveSession, at now: HubTime) {
        guard session.isConfirmed(at: now.monotonic) else { return end(session, from: session.origin, at: now) }
        remove(session)
    }

    /// The member is gone in any other way.
    func lose(_ session: LiveSession, at now: HubTime) {
        end(session, from: session.point(at: now.monotonic), at: now)
    }

    /// A join of the same socket took its place: the client had given the first one up, who knows when.
    func replace(_ session: LiveSession, at now: HubTime) {
        let isYoung = now.monotonic - session.began < window
        end(session, from: isYoung ? session.origin : session.point(at: now.monotonic), at: now)
    }

    /// How long a client may ignore what it is sent, in the longest of cases: in milliseconds, as the window.
    var patience: Int64 { window }

    func remove(_ session: LiveSession) { state.withLock { Self.remove(session, &$0) } }

    private func end(_ session: LiveSession, from point: RecoveryPoint, at now: HubTime) {
        guard window > 0 else { return remove(session) }
        state.withLock { state in
            Self.remove(session, &state)
            Self.forget(&state, at: now.monotonic)
            let until = now.monotonic + window
            state.buckets[session.key, default: Bucket()].ended.append(Ended(point: point, until: until))
            state.ends.append((session.key, until))
            Self.thin(session.key, &state)
        }
    }

    /// No process of this hub came before this one, so that whoever joins first missed nothing.
    package func nobodyIsFromBefore() {
        state.withLock { $0.restartUntil = .min }
    }

    /// The earliest mark that anybody may yet recover from; nil if there is none.
    package func oldestMark() -> Int? {
        state.withLock { state in
            var oldest: Int?
            func consider(_ point: RecoveryPoint) {
                // What has no mark yet lies before all of them.
                let mark = if case .mark(let mark) = point { mark } else { 0 }
                oldest = min(oldest ?? mark, mark)
            }
            for bucket in state.buckets.values {
                for session in bucket.live { consider(session.point(at: state.now)) }
                for ended in bucket.ended { consider(ended.point) }
            }
            return oldest
        }
    }

    /// To be called once a second or so.
    package func forget(at now: HubTime) {
        state.withLock { Self.forget(&$0, at: now.monotonic) }
    }

    package var endedCount: Int { state.withLock { $0.ends.count - $0.firstEnd } }

    // MARK: Under the lock

    private static func earliest(_ key: RecoveryKey, before joinNumber: Int, _ state: State) -> RecoveryPoint? {
        guard let ended = state.buckets[key]?.ended else { return nil }
        let free = ended.filter { !$0.isTaken(before: joinNumber) }
        return (free.isEmpty ? ended : free).map(\.point).min { $0.isEarlier(than: $1) }
    }

    /// The earliest is given out and the latest marked: whoever comes next finds the earliest still there.
    private static func take(_ taker: Taker, _ state: inout State) {
        let (key, number) = (taker.session.key, taker.session.joinNumber)
        guard key.namesDevice, let ended = state.buckets[key]?.ended else { return }
        let free = ended.indices.filter { !ended[$0].isTaken(before: number) }
        if let latest = free.max(by: { ended[$0].point.isEarlier(than: ended[$1].point) }) {
            state.buckets[key]?.ended[latest].takers.append(taker)
        }
    }

    /// Live sessions that may be dead ones of the client that joins.
    private static func unproven(_ key: RecoveryKey, before joinNumber: Int, _ state: State) -> [LiveSession] {
        guard key.hasSubject, let live = state.buckets[key]?.live else { return [] }
        return live.prefix(mostLive).filter { $0.joinNumber < joinNumber }
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
        if !bucket.live.isEmpty || !bucket.ended.isEmpty { state.buckets[session.key] = bucket }
    }

    private static func thin(_ key: RecoveryKey, _ state: inout State) {
        guard let ended = state.buckets[key]?.ended, ended.count > mostEnded else { return }
        if let latest = ended.indices.max(by: { ended[$0].point.isEarlier(than: ended[$1].point) }) {
            state.buckets[key]?.ended.remove(at: latest)
        }
    }

    private static func forget(_ state: inout State, at now: Int64) {
        state.now = max(state.now, now)
        while state.firstEnd < state.ends.count, state.ends[state.firstEnd].until <= now {
            let key = state.ends[state.firstEnd].key
            state.firstEnd += 1
            guard var bucket = state.buckets.removeValue(forKey: key) else { continue }
            bucket.ended.removeAll { $0.until <= now }
            if !bucket.live.isEmpty || !bucket.ended.isEmpty { state.buckets[key] = bucket }
        }
        if state.firstEnd > 1024, state.firstEnd * 2 > state.ends.count {
            state.ends.removeFirst(state.firstEnd)
            state.firstEnd = 0
        }
    }
}
