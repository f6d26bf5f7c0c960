/// Clients that come from another hub on the same database: what they missed is asked of whoever knows where they were.
///
/// Whom each hub serves is written down in the database (`SessionRecording`), so that writing a session down tells which other hubs
/// have had somebody who looks the same. Where such a hub left its clients it has stored, too: from there whoever joins is sent
/// everything, unless that hub lives and says better (`PeerSessions`). At least once, never less.
extension SessionRegistry {
    /// Another hub that had somebody who looks the same.
    package struct Elsewhere: Sendable, Equatable {
        package let node: String
        /// What its clients certainly have that look the same, or all of them, as that hub wrote it down: a snapshot of Postgres, as
        /// text.
        package let snapshot: String
        /// What those who look the same certainly have, as the hub itself says: a cursor. Nil where it did not say so.
        package private(set) var cursor: String?
        /// When it was looked for, as Postgres writes times, where it is one session, which its client may claim; else nil.
        package let soughtAt: String?

        package init(node: String, snapshot: String, soughtAt: String? = nil) {
            self.node = node
            self.snapshot = snapshot
            self.soughtAt = soughtAt
        }

        package func at(_ cursor: String) -> Elsewhere {
            var copy = self
            copy.cursor = cursor
            return copy
        }

        var point: RecoveryPoint {
            cursor.map { .peer(cursor: $0, otherwise: snapshot) } ?? .snapshot(snapshot)
        }
    }

    /// Asks those hubs where they have whoever looks like that, and calls back once, from any thread: with what is known then.
    package typealias AskElsewhere =
        @Sendable (
            [RecoveryKey: [Elsewhere]], _ done: @escaping @Sendable ([RecoveryKey: [Elsewhere]]) -> Void
        ) -> Void

    /// From here on joins wait until it is known whether another hub has had their clients, which is looked for with each write
    /// (`isWritten`). To be called before anybody joins.
    ///
    /// - Parameter ask: asks the hubs that were found; nil where what stands in the database is all that is ever known.
    package func lookElsewhere(asking ask: AskElsewhere? = nil) {
        state.withLock {
            $0.recording.looksElsewhere = true
            $0.recording.askElsewhere = ask
        }
    }

    /// The recovery window, in whole seconds.
    package var windowSeconds: Int { Int(window / 1000) }

    /// Where other hubs had clients that look like the session's; none where nobody looks for them, or none is known.
    func elsewhere(_ session: LiveSession) -> [Elsewhere] { state.withLock { _ in session.elsewhere ?? [] } }

    /// A member begins no later than where another hub had its client.
    ///
    /// - Parameter point: where it would begin by what is known here; nil if it missed nothing.
    /// - Returns: where it begins.
    func begin(_ session: LiveSession, at point: RecoveryPoint?, andNoLaterThan others: [RecoveryPoint])
        -> RecoveryPoint?
    {
        guard let all = RecoveryPoint.earliest(of: (point.map { [$0] } ?? []) + others) else { return nil }
        guard !others.isEmpty else { return point }
        session.settles(at: RecoveryPosition(point: all), hadMissed: true)
        state.withLock { Self.noteLowest(session, &$0) }
        return all
    }

    /// What the hubs themselves have said.
    ///
    /// - Parameter stored: what stands in the database.
    func learn(
        _ found: [RecoveryKey: [Elsewhere]], of stored: [RecoveryKey: [Elsewhere]], for sessions: [LiveSession]
    ) {
        state.withLock { _ in
            for session in sessions where session.elsewhere == nil {
                let user = session.key.ofUser
                guard let ofUser = found[user] else {
                    session.elsewhere = session.presumed
                    continue
                }
                // Of a hub that says nothing of the user only what it had stored counts.
                let others = ofUser.filter { other in
                    other.cursor != nil || stored[user]?.contains { $0.node == other.node } ?? false
                }
                session.elsewhere = (found[session.key] ?? []) + others
            }
        }
    }

    /// Which hubs are asked about which keys. A hub that had somebody of a key is asked about the user, too: what gave way a moment
    /// ago does not stand in the database yet.
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

    /// Milliseconds after which a join waits no longer for those who were asked, should nobody call back.
    static var longestQuestion: Int64 { 1000 }

    // MARK: Under the lock

    /// Of which keys other hubs are looked for with the write of one.
    static func seek(_ key: RecoveryKey, _ state: State) -> [RecoveryKey] {
        guard state.recording.looksElsewhere, let bucket = state.buckets[key] else { return [] }
        var keys: [RecoveryKey] = []
        for session in bucket.sessions.live where session.isSought {
            session.isLookedFor = true
            // So many of the user's sessions may have ended there that this one gave way (`SessionShares`).
            if keys.isEmpty { keys = [session.key, session.key.ofUser] }
        }
        return keys
    }

    /// What was found with the write of a key.
    ///
    /// - Returns: those for whom the hubs that were found are to be asked first.
    static func note(
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

    /// Who has joined since the key was taken is looked for with the next write.
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
