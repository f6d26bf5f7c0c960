/// Clients that went on here after another hub had them: what that hub keeps for them ends, or each move within the recovery window would
/// bring them again what came since the first.
///
/// The hub where a client is claims its session in the database (Migration024Moves.sql), and the hub that keeps it takes the claim from
/// there. The claim waits until its client has proven that it lacks nothing of what it came for, and until that is written here; so a claim
/// that is lost, and a hub that is killed at any moment, cost repeated rows and nothing else.
///
/// As on one hub (`SessionBucket`), only a client that certainly was somewhere before claims a session, and only where nothing but that one
/// session can be its own: nobody of this hub's, no other hub's, no hub's of which it is not known whom it served.
extension SessionRegistry {
    /// A member whose session on another hub ends when it has proven that it lacks nothing of it.
    struct PendingClaim {
        let session: LiveSession
        let node: String
        let soughtAt: String
    }

    /// A session on another hub whose client is here.
    package struct Claim: Sendable, Equatable {
        package let node: String
        package let key: RecoveryKey
        /// When it was looked for, as Postgres writes times.
        package let soughtAt: String
    }

    /// Milliseconds after a join before which it claims nothing: who was lost with it, and looks the same, is back by then.
    static var claimDelay: Int64 { 5_000 }

    /// The claims that can be written now; each comes once.
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

    /// Clients of these keys went on at other hubs, which looked for them at these moments, in monotonic milliseconds: the only session
    /// of such a key ends, if it was lost by then.
    package func areClaimed(_ claims: [(key: RecoveryKey, soughtAt: Int64)]) {
        state.withLock { state in
            for (key, soughtAt) in claims {
                // It may be one that comes too late for its own.
                if state.buckets[key]?.sessions.hasComeLate() == true {
                    Self.note(key, &state)
                    continue
                }
                guard let lostAt = Self.lostAt(of: key, state), lostAt <= soughtAt else { continue }
                if state.restored?[key] != nil {
                    state.restored?[key] = nil
                } else {
                    state.buckets[key]?.sessions.endsElsewhere()
                }
                Self.note(key, &state)
            }
        }
    }

    // MARK: Under the lock

    /// When the only session of a key was lost; nil where it is there, where there are several, where a client may come too late for one
    /// that is forgotten, and where nobody knows.
    static func lostAt(of key: RecoveryKey, _ state: State) -> Int64? {
        guard count(of: key, state) == 1 else { return nil }
        let sessions = state.buckets[key]?.sessions
        guard sessions?.live.isEmpty ?? true, sessions?.overdue.isEmpty ?? true else { return nil }
        if let left = state.restored?[key] { return left.lostAt }
        return state.buckets[key]?.sessions.ended.first(where: \.isAwaited)?.lostAt
    }

    /// The same, where another hub may claim it.
    static func writtenLoss(of key: RecoveryKey, _ state: State) -> Int64? {
        state.recording.looksElsewhere ? lostAt(of: key, state) : nil
    }

    /// Members whose client one other hub had, as the only one of its kind. Without a user it may be a stranger's.
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
    /// The only session that somebody may come for ends, as its client went on at another hub.
    mutating func endsElsewhere() { ended.removeAll(where: \.isAwaited) }
}
