import Wire

/// A member's time between the end of its token and a fresh one: what it was shown until then.
struct TokenLapse {
    /// Lists of who is there, or their numbers.
    let watchesPresence: Bool
    let countsPresence: Bool
    let history: HistoryRequest?
}

/// Tokens that are refreshed a little too late (wire-protocol A8).
///
/// A member whose token has run out is in no audience any more, as one whose join is not answered, so that nothing can reach it; and
/// it may write nothing. Others still see that it is present: its socket lives. With a good token in time it goes on with what it
/// missed, of row changes and of kept broadcasts; without one its channel ends as any other whose token is refused.
extension Hub {
    /// The second since 1970 at which a member's channel ends whose token has run out; nil where that is now.
    func endOfLapse(_ membership: Membership) -> Int64? {
        // Kept broadcasts that it missed are remembered for no longer than of one whose socket broke.
        let hasHistory = membership.history != nil || membership.lapse?.history != nil
        let longest = context.limits.tokenGrace
        let grace = hasHistory ? min(longest, catchUp.sessions.windowSeconds) : longest
        guard grace > 0, membership.join.isJoined, membership.connection.reader == nil else { return nil }
        let end = Int64(membership.claims.expiresAt) + Int64(grace)
        return context.now.unix / 1000 < end ? end : nil
    }

    /// Lets nothing reach a member any more until it brings a fresh token, and says so.
    func lapse(_ membership: Membership, _ refusal: Refusal) {
        guard membership.lapse == nil else { return }
        membership.lapse = TokenLapse(
            watchesPresence: membership.presence.watcherIndex != nil,
            countsPresence: membership.presence.counterIndex != nil, history: membership.history?.request)
        authorization.refuseHeld(of: membership, refusal, &context)
        stopHearing(membership)
        // It may come back for what is kept, as if its socket had broken.
        history.leave(membership, .lost, &context)
        membership.history = nil
        presence.stopShowing(to: membership, &context)
        membership.presence.watcherIndex = nil
        membership.presence.counterIndex = nil
        streams.stopShowing(to: membership, &context)
        catchUp.lapse(membership, wasHearing: rows.stop(membership, &context), rows.progress, &context)
        context.system(membership, extension: "system", ok: false, message: refusal.message)
    }

    /// Gives a member that has a good token again what it had before its last one ran out; its row changes go on with
    /// `resubscribe`.
    ///
    /// - Returns: whether its last one had run out.
    func resume(_ membership: Membership) -> Bool {
        guard let lapse = membership.lapse else { return false }
        membership.lapse = nil
        if var request = lapse.history {
            // From where it was lost, and not from where it once came.
            request.after = nil
            let trace = catchUp.trace(
                of: membership.claims, joinRef: membership.joinRef, membership.connection, rows.progress, &context)
            membership.history = history.enter(membership, request, trace, &context)
            membership.history?.doubts = nil
        }
        if membership.mayRead(.broadcast) { letHear(membership, after: missedMessages(by: membership)) }
        if lapse.watchesPresence, membership.mayRead(.presence) { presence.show(to: membership, &context) }
        if lapse.countsPresence, membership.mayRead(.presence) { presence.showOccupancy(to: membership, &context) }
        streams.enter(membership, &context)
        return true
    }

    /// What a member wants whose token has run out.
    func refuseLapsed(_ frame: ClientFrame, of membership: Membership) {
        guard let kind = MessageKind(rawValue: frame.event), let expired = membership.claims.expired(at: context.now)
        else { return }
        context.refuse(kind, frame.ref, of: membership, expired)
    }
}
