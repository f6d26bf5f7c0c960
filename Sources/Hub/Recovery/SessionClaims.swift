/// Clients that moved here from another hub: their session there must end, or each move within the recovery window
/// would repeat everything since the first.
///
/// The client's new hub claims its session in the database (SchemaSessions.sql), and the hub that keeps the session
/// reads the claim there. A claim is not made before the client has proven that it lacks nothing of what it came for,
/// and before that is written here; so a lost claim, or a hub killed at any moment, costs repeated rows and nothing
/// else.
///
/// As on one hub (`SessionBucket`), only a client that was certainly somewhere before claims a session, and only if no
/// other session can be its own: on this hub, on another hub, or on a hub whose clients are unknown.
extension SessionRegistry {
    /// A member whose session on another hub ends once it has proven that it lacks nothing from there.
    struct PendingClaim {
        let session: LiveSession
        let node: String
        let soughtAt: String
    }

    /// A session on another hub whose client is here.
    package struct Claim: Sendable, Equatable {
        package let node: String
        package let key: RecoveryKey
        /// The time of the search for it, as Postgres writes times.
        package let soughtAt: String
    }

    /// Milliseconds after a join before it claims anything: lookalikes that were lost together with it are back by
    /// then.
    static var claimDelay: Int64 { 5_000 }

    /// Removes and returns the claims that can be written now.
    package func takeClaims(at now: HubTime) -> [Claim] {
        state.withLock { state in
            var due: [Claim] = []
            var left: [PendingClaim] = []
            for claim in state.recording.claims {
                let session = claim.session
                if session.trace.hasEnded || session.trace.isGone { continue }
                guard session.trace.isSettled, now.monotonic - session.trace.began >= Self.claimDelay,
                    session.isConfirmed(at: now.monotonic), Self.isWritten(session, state, at: now.monotonic)
                else {
                    left.append(claim)
                    continue
                }
                guard session.cameFromElsewhere else { continue }
                due.append(Claim(node: claim.node, key: session.key, soughtAt: claim.soughtAt))
            }
            state.recording.claims = left
            return due
        }
    }

    /// Ends sessions whose clients moved to other hubs, which searched for them at these monotonic times: the only
    /// session of such a key ends if it was lost by then.
    package func endClaimed(_ claims: [(key: RecoveryKey, soughtAt: Int64)]) {
        state.withLock { state in
            for (key, soughtAt) in claims {
                // The client may be one that came too late for its own session.
                if state.buckets[key]?.sessions.countLateClient() == true {
                    Self.recordChange(key, &state)
                    continue
                }
                guard let lostAt = Self.lostAt(of: key, state), lostAt <= soughtAt else { continue }
                if state.restored?[key] != nil {
                    state.restored?[key] = nil
                } else {
                    state.buckets[key]?.sessions.endsElsewhere()
                }
                Self.recordChange(key, &state)
            }
        }
    }

    // MARK: Under the lock

    /// Returns when the only session of a key was lost; nil if it is live, if there are several, if a client of an
    /// expired session may still come, or if it is unknown.
    static func lostAt(of key: RecoveryKey, _ state: State) -> Int64? {
        guard count(of: key, state) == 1 else { return nil }
        let sessions = state.buckets[key]?.sessions
        guard sessions?.live.isEmpty ?? true, sessions?.overdue.isEmpty ?? true else { return nil }
        if let left = state.restored?[key] { return left.lostAt }
        return state.buckets[key]?.sessions.ended.first(where: \.isAwaited)?.lostAt
    }

    /// Returns the same, if another hub may claim the session.
    static func writtenLoss(of key: RecoveryKey, _ state: State) -> Int64? {
        state.recording.looksElsewhere ? lostAt(of: key, state) : nil
    }

    /// Records claims for members whose client had exactly one session on one other hub. Without a user, that could be
    /// a stranger's.
    static func noteClaims(of sessions: [LiveSession], _ elsewhere: [Elsewhere], _ state: inout State) {
        guard elsewhere.count == 1, let other = elsewhere.first, let soughtAt = other.soughtAt else { return }
        for session in sessions where session.trace.evidence == .refs && session.key.hasSubject {
            state.recording.claims.append(PendingClaim(session: session, node: other.node, soughtAt: soughtAt))
        }
    }

    private static func isWritten(_ session: LiveSession, _ state: State, at now: Int64) -> Bool {
        guard let bucket = state.buckets[session.key], bucket.recorded >= count(of: session.key, state) else {
            return false
        }
        return bucket.place?.covers(session.position(at: now).point, proven: state.recording.proven) ?? false
    }
}

extension SessionBucket {
    /// Ends the only session that can be taken over, because its client moved to another hub.
    mutating func endsElsewhere() { ended.removeAll(where: \.isAwaited) }
}
