import Wire

/// Deadlines of members: a join must be answered, or a message delivered that was withheld for a moment.
extension Hub {
    /// Milliseconds after which a join is answered even if it is not known yet what its client missed; that follows the
    /// answer. Dart's realtime_client 2.13 takes itself for a duplicate, and leaves, if the answer takes about two
    /// seconds after a reconnect.
    static let latestAnswer: Int64 = 1500

    /// Ensures that a waiting join is answered in time.
    func awaitAnswer(of membership: Membership) {
        guard membership.pending != nil, membership.connection.reader == nil, let due = answerDue(of: membership) else {
            return
        }
        context.scheduleDuty(.member(membership.slot, membership.member), at: due)
    }

    /// Returns when a join must be answered; nil if there is no deadline, as for rights alone: a client that states its
    /// position learns from the answer whether it resumes there.
    private func answerDue(of membership: Membership) -> Int64? {
        guard let pending = membership.pending, membership.rows != nil else { return nil }
        if let wait = membership.changesWait { return pending.began + wait }
        return membership.recovery?.isReported == true ? nil : pending.began + Self.latestAnswer
    }

    /// Performs a member's due duty (`.member`).
    func performDuties(of member: MemberID, on slot: Slot) {
        guard let membership = connection(slot)?.memberships.first(where: { $0.member == member }) else { return }
        if let due = answerDue(of: membership) {
            guard context.now.monotonic >= due else { return awaitAnswer(of: membership) }
            return answerInTime(membership)
        }
        guard let due = membership.firstTokenDue else { return }
        if context.now.monotonic >= due {
            endFirstMoment(of: membership)
        } else {
            context.scheduleDuty(.member(slot, member), at: due)
        }
    }

    private func answerInTime(_ membership: Membership) {
        if let wait = membership.changesWait {
            let refusal = Refusal.changesTimeout(milliseconds: Int(wait))
            let isAsked = membership.join.state == .waitsForRecovery
            return handleEvent(isAsked ? .recoveryFailed(refusal) : .failed(.all, refusal), of: membership)
        }
        // Rights and kept broadcasts are part of the answer; and a member whose session is not written down yet would
        // lose messages if the hub were killed after answering.
        guard !membership.join.needs([.authorization, .history, .session]) else {
            return context.scheduleDuty(.member(membership.slot, membership.member), at: context.now.monotonic + 250)
        }
        // The member is owed everything from this point on, whenever its live changes begin.
        if let recovery = membership.recovery, recovery.point == nil { recovery.point = rows.progress.point }
        handleEvent(membership.grants?.replay?.overflowed == true ? .replayOverflowed : .isLate, of: membership)
    }

    // MARK: The first token

    /// Milliseconds after the answer during which failures of row changes are withheld from a member that joined
    /// without a token, on a socket that names no user: realtime-csharp 7.3 sends its token when it has the answer, and
    /// its `Subscribe()` throws on a `system` error before that. Clients of version 2 send theirs with the join.
    private static let firstMoment: Int64 = 2000

    /// Starts the grace period of a member whose join is being answered.
    func beginFirstMoment(of membership: Membership, _ pending: PendingJoin) {
        guard membership.version == .v1, !pending.hasToken, membership.rows != nil, membership.claims.subject == nil
        else { return }
        let due = context.now.monotonic + Self.firstMoment
        membership.firstTokenDue = due
        context.scheduleDuty(.member(membership.slot, membership.member), at: due)
    }

    /// Ends the grace period: the member's token has come, or will not.
    func endFirstMoment(of membership: Membership) {
        membership.firstTokenDue = nil
        guard membership.isOwedState, !membership.join.hasEnded else { return }
        membership.isOwedState = false
        if let group = membership.group { catchUp.sendState(of: group, to: membership, &context) }
    }
}

extension Membership {
    /// Whether to withhold the failure of row changes, because the member may soon ask for them under another token.
    func isSpared(_ group: ChangeGroup) -> Bool {
        guard firstTokenDue != nil, group.fault != nil else { return false }
        isOwedState = true
        return true
    }
}
