import Wire

/// What is done about a member at a certain time: its join is answered, or it is told what it was to be spared for a moment.
extension Hub {
    /// Milliseconds after which a join is answered, though what its client missed is not known yet; that follows the answer. Dart's
    /// realtime_client 2.13 takes itself for a duplicate, and leaves, if the answer takes about two seconds after a reconnect.
    static let latestAnswer: Int64 = 1500

    /// Sees to it that a join which waits is answered in time.
    func awaitAnswer(of membership: Membership) {
        guard membership.pending != nil, membership.connection.reader == nil, let due = answerDue(of: membership) else {
            return
        }
        context.schedule(.member(membership.slot, membership.member), at: due)
    }

    /// When a join is to be answered; nil where it waits for as long as it takes, as for its rights alone: who says itself where it was is
    /// told in the answer whether it goes on from there.
    private func answerDue(of membership: Membership) -> Int64? {
        guard let pending = membership.pending, membership.rows != nil else { return nil }
        if let wait = membership.changesWait { return pending.began + wait }
        return membership.recovery?.isReported == true ? nil : pending.began + Self.latestAnswer
    }

    /// Does what is due of a member: the duty `.member`.
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
            context.schedule(.member(slot, member), at: due)
        }
    }

    private func answerInTime(_ membership: Membership) {
        if let wait = membership.changesWait {
            let refusal = Refusal.changesTimeout(milliseconds: Int(wait))
            let isAsked = membership.join.state == .waitsForRecovery
            return handle(isAsked ? .recoveryFailed(refusal) : .failed(.all, refusal), of: membership)
        }
        // Its rights, and what is kept of broadcasts, are part of the answer; and who is answered is written down, or would lose what
        // comes if the hub were killed.
        guard !membership.join.needs([.authorization, .history, .session]) else {
            return context.schedule(.member(membership.slot, membership.member), at: context.now.monotonic + 250)
        }
        // What comes from here on it is owed, whenever its changes begin to come live.
        if let recovery = membership.recovery, recovery.point == nil { recovery.point = rows.progress.point }
        handle(membership.grants?.replay?.overflowed == true ? .replayOverflowed : .isLate, of: membership)
    }

    // MARK: The first token

    /// Milliseconds behind the answer for which a member that joined without a token, on a socket that names no user, is not told that
    /// its row changes fail: realtime-csharp 7.3 sends its token when it has the answer, and its `Subscribe()` throws at a `system`
    /// error before that. Clients of version 2 send theirs with the join.
    private static let firstMoment: Int64 = 2000

    /// Its join is being answered.
    func beginFirstMoment(of membership: Membership, _ pending: PendingJoin) {
        guard membership.version == .v1, !pending.hasToken, membership.rows != nil, membership.claims.subject == nil
        else { return }
        let due = context.now.monotonic + Self.firstMoment
        membership.firstTokenDue = due
        context.schedule(.member(membership.slot, membership.member), at: due)
    }

    /// Its token has come, or none comes.
    func endFirstMoment(of membership: Membership) {
        membership.firstTokenDue = nil
        guard membership.isOwedState, !membership.join.hasEnded else { return }
        membership.isOwedState = false
        if let group = membership.group { catchUp.sendState(of: group, to: membership, &context) }
    }
}

extension Membership {
    /// Whether it is not to be told yet that row changes fail which it may soon ask for as somebody else.
    func isSpared(_ group: ChangeGroup) -> Bool {
        guard firstTokenDue != nil, group.fault != nil else { return false }
        isOwedState = true
        return true
    }
}
