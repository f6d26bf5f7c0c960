import Wire

/// What a socket may not have more of.
extension Hub {
    /// Counts a join. Every one, also one that is refused for another reason: each costs a look at a token.
    func countJoin(on connection: Connection) throws(Refusal) {
        guard let rate = limits.joins else { return }
        if !connection.limits.joins.take(of: rate, at: latest.monotonic) {
            throw .over(.joinsPerSecond, limits.joinsPerSecond)
        }
    }

    /// Counts a socket among its user's from the first join on that says who it is: most clients open theirs with a key
    /// of the project, which names nobody.
    func countUser(_ claims: Claims, of connection: Connection) throws(Refusal) {
        guard let ledger, ledger.countsUsers, let user = claims.subject, connection.limits.user == nil
        else { return }
        guard ledger.enter(user) else { throw .over(.connectionsPerUser, limits.connectionsPerUser) }
        connection.limits.user = user
    }

    /// A socket whose user the door has counted already.
    func adoptUser(of connection: Connection) {
        if ledger != nil { connection.limits.user = connection.claims.subject }
    }

    func releaseUser(of connection: Connection) {
        if let user = connection.limits.user { ledger?.leave(user) }
    }

    /// Whether a member may track once more; if not, it was told.
    ///
    /// Only tracking is counted. Whoever wants to be gone may be so at any rate, and it costs nothing unless they track
    /// again.
    func mayTrack(_ frame: ClientFrame, _ membership: Membership) -> Bool {
        guard let rate = limits.presence,
            !membership.connection.limits.presence.take(of: rate, at: latest.monotonic)
        else { return true }
        let refusal = Refusal.over(.presencePerSecond, limits.presencePerSecond)
        if frame.ref.isNull, !mayComplain(to: membership.connection) {
            countRefusal(refusal)
        } else {
            refuse(frame.ref, of: membership, refusal)
        }
        return false
    }

    /// Once a second is enough for errors that no client can match to what it sent.
    private func mayComplain(to connection: Connection) -> Bool {
        guard let rate = Rate(perSecond: 1, burst: 1) else { return true }
        return connection.limits.complaints.take(of: rate, at: latest.monotonic)
    }

    /// Counts what was read from a socket. What came is handled in any case; only how soon the socket is read again
    /// depends on it.
    ///
    /// - Parameters:
    ///   - endsMessage: with these bytes a message was complete.
    ///   - now: milliseconds on a clock that never goes back.
    /// - Returns: milliseconds for which the socket is to be left unread.
    package func pause(after bytes: Int, endsMessage: Bool, from slot: Slot, at now: Int64) -> Int64 {
        guard let connection = connection(slot) else { return 0 }
        var pause: Int64 = 0
        if let rate = limits.bytes {
            let owed = connection.limits.bytes.spend(bytes, of: rate, at: now)
            if owed > 0 { slowed[.bytesPerSecond, default: 0] += 1 }
            pause = max(pause, owed)
        }
        if endsMessage, let rate = limits.messages {
            let owed = connection.limits.messages.spend(1, of: rate, at: now)
            if owed > 0 { slowed[.messagesPerSecond, default: 0] += 1 }
            pause = max(pause, owed)
        }
        return pause
    }
}
