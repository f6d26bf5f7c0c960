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

        package init(node: String, snapshot: String) {
            self.node = node
            self.snapshot = snapshot
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

    package var looksElsewhere: Bool { state.withLock { $0.recording.looksElsewhere } }

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
        return all
    }

    /// What the hubs themselves have said.
    func learn(_ found: [RecoveryKey: [Elsewhere]], for sessions: [LiveSession]) {
        state.withLock { _ in
            for session in sessions where session.elsewhere == nil {
                session.elsewhere = found[session.key] ?? session.presumed
            }
        }
    }

    /// Milliseconds after which a join waits no longer for those who were asked, should nobody call back.
    static var longestQuestion: Int64 { 1000 }

    // MARK: Under the lock

    /// What was found with the write of a key.
    ///
    /// - Returns: those for whom the hubs that were found are to be asked first.
    static func note(_ elsewhere: [Elsewhere], of key: RecoveryKey, _ state: inout State) -> [LiveSession] {
        guard let bucket = state.buckets[key] else { return [] }
        let waiting = bucket.sessions.live.filter { $0.elsewhere == nil && $0.presumed == nil }
        let asks = state.recording.askElsewhere != nil && !elsewhere.isEmpty
        for session in waiting {
            session.presumed = elsewhere
            if !asks { session.elsewhere = elsewhere }
        }
        return asks ? waiting : []
    }
}
