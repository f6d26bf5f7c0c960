/// Clients that come from another hub on the same database: what they missed is asked of whoever knows where they were.
///
/// Whom each hub serves is written down in the database (`SessionRecording`), so that writing a session down tells which other hubs
/// have had somebody who looks the same. Where such a hub left its clients it has stored, too: from there whoever joins is brought
/// everything, unless that hub lives and says better (`PeerSessions`). At least once, never less.
extension SessionRegistry {
    /// Another hub that had somebody who looks the same.
    package struct Elsewhere: Sendable, Equatable {
        package let node: String
        /// What all of its clients certainly have: a snapshot of Postgres, as text.
        package let snapshot: String

        package init(node: String, snapshot: String) {
            self.node = node
            self.snapshot = snapshot
        }
    }

    /// From here on joins wait until it is known whether another hub has had their clients, which is looked for with each write
    /// (`isWritten`). To be called before anybody joins.
    package func lookElsewhere() { state.withLock { $0.recording.looksElsewhere = true } }

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

    // MARK: Under the lock

    /// What was found with the write of a key.
    static func note(_ elsewhere: [Elsewhere], of key: RecoveryKey, _ state: inout State) {
        guard let bucket = state.buckets[key] else { return }
        for session in bucket.sessions.live where session.elsewhere == nil { session.elsewhere = elsewhere }
    }
}
