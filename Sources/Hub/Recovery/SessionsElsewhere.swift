/// Clients that come from another hub on the same database: the hubs that know their positions are asked for them.
///
/// The clients of each hub are stored in the database (`SessionRecording`), so that storing a session reveals which
/// other hubs have had a lookalike. Each hub has also stored where it left its clients: a joining client is sent
/// everything from there, unless the hub is alive and gives a better position (`PeerSessions`). At least once, never
/// less.
extension SessionRegistry {
    /// Another hub that had a lookalike.
    package struct Elsewhere: Sendable, Equatable {
        package let node: String
        /// The proven position of its lookalikes, or of all its clients, as stored by that hub: a snapshot of Postgres,
        /// as text.
        package let snapshot: String
        /// The proven position of its lookalikes, as stated by the hub itself: a cursor. Nil if it did not say.
        package private(set) var cursor: String?
        /// The time of the search, as Postgres writes times, if it found a single session, which its client may claim;
        /// otherwise nil.
        package let soughtAt: String?

        package init(node: String, snapshot: String, soughtAt: String? = nil) {
            self.node = node
            self.snapshot = snapshot
            self.soughtAt = soughtAt
        }

        package func withCursor(_ cursor: String) -> Elsewhere {
            var copy = self
            copy.cursor = cursor
            return copy
        }

        var point: RecoveryPoint {
            cursor.map { .peer(cursor: $0, otherwise: snapshot) } ?? .snapshot(snapshot)
        }
    }

    /// Asks those hubs for the positions of such clients, and calls back once, from any thread, with what is known
    /// then.
    package typealias AskElsewhere =
        @Sendable (
            [RecoveryKey: [Elsewhere]], _ done: @escaping @Sendable ([RecoveryKey: [Elsewhere]]) -> Void
        ) -> Void

    /// Makes joins wait until it is known whether another hub has had their clients, which is searched for with each
    /// write (`isWritten`). Call before any join.
    ///
    /// - Parameter ask: asks the hubs that were found; nil if only the database is ever consulted.
    package func lookElsewhere(asking ask: AskElsewhere? = nil) {
        state.withLock {
            $0.recording.looksElsewhere = true
            $0.recording.askElsewhere = ask
        }
    }

    /// The recovery window, in whole seconds.
    package var windowSeconds: Int { Int(window / 1000) }

    /// Returns other hubs that had clients that look like the session's; none if they are not searched for, or none is
    /// known.
    func elsewhere(_ session: LiveSession) -> [Elsewhere] { state.withLock { _ in session.elsewhere ?? [] } }

    /// Makes a member begin no later than where other hubs had its client.
    ///
    /// - Parameter point: where it would begin as far as is known here; nil if it missed nothing.
    /// - Returns: where it begins.
    func beginSession(_ session: LiveSession, at point: RecoveryPoint?, andNoLaterThan others: [RecoveryPoint])
        -> RecoveryPoint?
    {
        guard let all = RecoveryPoint.earliest(of: (point.map { [$0] } ?? []) + others) else { return nil }
        guard !others.isEmpty else { return point }
        session.settleStart(at: RecoveryPosition(point: all), hadMissed: true)
        state.withLock { Self.noteLowest(session, &$0) }
        return all
    }

    /// Records the answers of the hubs themselves.
    ///
    /// - Parameter stored: the hubs' stored positions.
    func recordFound(
        _ found: [RecoveryKey: [Elsewhere]], of stored: [RecoveryKey: [Elsewhere]], for sessions: [LiveSession]
    ) {
        state.withLock { _ in
            for session in sessions where session.elsewhere == nil {
                let user = session.key.ofUser
                guard let ofUser = found[user] else {
                    session.elsewhere = session.presumed
                    continue
                }
                // If a hub says nothing about the user, only what it had stored counts.
                let others = ofUser.filter { other in
                    other.cursor != nil || stored[user]?.contains { $0.node == other.node } ?? false
                }
                session.elsewhere = (found[session.key] ?? []) + others
            }
        }
    }

    /// Returns the keys to ask each hub about. A hub that had clients of a key is also asked about the user: a session
    /// that just gave way is not in the database yet.
    static func question(
        _ stored: [RecoveryKey: [Elsewhere]], for sessions: [LiveSession]
    ) -> [RecoveryKey: [Elsewhere]] {
        var out: [RecoveryKey: [Elsewhere]] = [:]
        for session in sessions {
            let (key, user) = (session.key, session.key.ofUser)
            guard out[key] == nil else { continue }
            if let others = stored[key] { out[key] = others }
            for other in (stored[user] ?? []) + (stored[key] ?? [])
            where !(out[user]?.contains { $0.node == other.node } ?? false) {
                out[user, default: []].append(other)
            }
        }
        return out
    }

    /// Milliseconds after which a join no longer waits for other hubs' answers, in case there is no callback.
    static var longestQuestion: Int64 { 1000 }

    // MARK: Under the lock

    /// Returns the keys to search for on other hubs with the write of a key.
    static func soughtKeys(_ key: RecoveryKey, _ state: State) -> [RecoveryKey] {
        guard state.recording.looksElsewhere, let bucket = state.buckets[key] else { return [] }
        var keys: [RecoveryKey] = []
        for session in bucket.sessions.live where session.isSought {
            session.isLookedFor = true
            // The user may have ended so many sessions there that this one gave way (`SessionShares`).
            if keys.isEmpty { keys = [session.key, session.key.ofUser] }
        }
        return keys
    }

    /// Records the hubs found with the write of a key.
    ///
    /// - Returns: the sessions for which the found hubs must be asked first.
    static func recordFound(
        _ found: [RecoveryKey: [Elsewhere]], of record: Record, _ state: inout State
    ) -> [LiveSession] {
        guard !record.sought.isEmpty, let bucket = state.buckets[record.key] else { return [] }
        let elsewhere = record.sought.flatMap { found[$0] ?? [] }
        let asks = state.recording.askElsewhere != nil && !elsewhere.isEmpty
        let waiting = bucket.sessions.live.filter { $0.isSought && $0.isLookedFor }
        noteClaims(of: waiting, elsewhere, &state)
        for session in waiting {
            session.presumed = elsewhere
            if !asks { session.elsewhere = elsewhere }
        }
        return asks ? waiting : []
    }

    /// Schedules another write to search for sessions that joined since the key was taken.
    static func seekAnew(_ key: RecoveryKey, _ state: inout State) {
        guard state.recording.looksElsewhere, let bucket = state.buckets[key],
            bucket.sessions.live.contains(where: { $0.isSought && $0.trace.isSettled && !$0.trace.isGone })
        else { return }
        state.recording.changed.insert(key)
        guard !state.recording.isAwaited else { return }
        state.recording.isAwaited = true
        state.recording.whenAwaited()
    }
}
