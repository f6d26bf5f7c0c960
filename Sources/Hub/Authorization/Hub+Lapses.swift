import Wire

/// A member's time between the expiry of its token and a fresh one: what the member received until then.
struct TokenLapse {
    /// The member received presence lists, or only counts.
    let watchesPresence: Bool
    let countsPresence: Bool
    let history: HistoryRequest?
}

/// Tokens that are refreshed a little too late (wire-protocol A8).
///
/// Like a member whose join is not answered yet, a member whose token has expired is in no audience, so nothing can
/// reach it, and it may write nothing. Others still see it as present, because its socket is alive. If a good token
/// arrives in time, the member resumes with the row changes and kept broadcasts that it missed; otherwise its channel
/// ends like any other whose token is refused.
extension Hub {
    /// The second since 1970 at which the channel of a member with an expired token ends; nil if it ends now.
    func endOfLapse(_ membership: Membership) -> Int64? {
        // Missed kept broadcasts are remembered no longer than for a member whose socket broke.
        let hasHistory = membership.history != nil || membership.lapse?.history != nil
        let longest = context.limits.tokenGrace
        let grace = hasHistory ? min(longest, catchUp.sessions.windowSeconds) : longest
        guard grace > 0, membership.join.isJoined, membership.connection.reader == nil else { return nil }
        let end = Int64(membership.claims.expiresAt) + Int64(grace)
        return context.now.unix / 1000 < end ? end : nil
    }

    /// Cuts a member off until it brings a fresh token, and tells it so.
    func lapseMember(_ membership: Membership, _ refusal: Refusal) {
        guard membership.lapse == nil else { return }
        membership.lapse = TokenLapse(
            watchesPresence: membership.presence.watcherIndex != nil,
            countsPresence: membership.presence.counterIndex != nil, history: membership.history?.request)
        authorization.refuseHeld(of: membership, refusal, &context)
        stopHearing(membership)
        // The member may come back for kept messages, as if its socket had broken.
        history.removeMember(membership, .lost, &context)
        membership.history = nil
        presence.stopShowing(to: membership, &context)
        membership.presence.watcherIndex = nil
        membership.presence.counterIndex = nil
        streams.stopShowing(to: membership, &context)
        catchUp.lapseMember(membership, wasHearing: rows.stopChanges(membership, &context), rows.progress, &context)
        context.sendSystemMessage(membership, extension: "system", ok: false, message: refusal.message)
    }

    /// Restores what a member received before its last token expired, now that it has a good one; its row changes
    /// continue with `resubscribe`.
    ///
    /// - Returns: whether the last token had expired.
    func resumeMember(_ membership: Membership) -> Bool {
        guard let lapse = membership.lapse else { return false }
        membership.lapse = nil
        if var request = lapse.history {
            // Resume where delivery stopped, not where the client originally started.
            request.after = nil
            let trace = catchUp.trace(
                of: membership.claims, joinRef: membership.joinRef, membership.connection, rows.progress, &context)
            membership.history = history.addMember(membership, request, trace, &context)
            membership.history?.doubts = nil
        }
        if membership.mayRead(.broadcast) { letHear(membership, after: missedMessages(by: membership)) }
        if lapse.watchesPresence, membership.mayRead(.presence) { presence.showList(to: membership, &context) }
        if lapse.countsPresence, membership.mayRead(.presence) { presence.showOccupancy(to: membership, &context) }
        streams.addMember(membership, &context)
        return true
    }

    /// Refuses a message from a member whose token has expired.
    func refuseLapsed(_ frame: ClientFrame, of membership: Membership) {
        guard let kind = MessageKind(rawValue: frame.event),
            let expired = membership.claims.expiryRefusal(at: context.now)
        else { return }
        context.refuseMessage(kind, frame.ref, of: membership, expired)
    }
}
