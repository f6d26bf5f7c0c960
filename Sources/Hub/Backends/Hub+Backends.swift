package import Wire

/// Operations of a backend on a user's memberships, by the claim `sub`.
extension Hub {
    /// Removes a user from a channel. The clients are told in a way that is final for them: they do not rejoin by
    /// themselves.
    ///
    /// - Parameter seconds: how long the user is barred from the channel (`ChannelBars`); nil if the user may rejoin at
    ///   once.
    /// - Returns: how many sockets were in it.
    package func removeUser(_ user: Name, from key: ChannelKey, seconds: Int?) -> Int {
        guard let channel = channels[key] else { return 0 }
        let refusal = Refusal.removed(topic: String(key.name), seconds: seconds)
        var count = 0
        for connection in context.openConnections {
            guard let membership = connection.memberships[channel], membership.claims.subject == user else { continue }
            endMembership(membership, refusal)
            count += 1
        }
        return count
    }

    /// Ends a channel for good. Only a backend's decision is final; every other cause may pass, and is reported by
    /// `expelMember`.
    private func endMembership(_ membership: Membership, _ refusal: Refusal) {
        authorization.refuseHeld(of: membership, refusal, &context)
        guard membership.connection.reader == nil else { return closeReaderChannel(membership, refusal, .revoked) }
        let isJoined = membership.pending == nil
        if let pending = membership.pending {
            counters.joinsRefused += 1
            context.refuseJoin(pending.ref, of: membership, refusal)
        }
        if isJoined { context.sendSystemMessage(membership, extension: "system", ok: false, message: refusal.message) }
        removeMember(membership, .revoked)
        guard isJoined else { return }
        let close = membership.frames.push(
            "phx_close", joinRef: membership.joinRef, ref: membership.joinRef, payload: refusal.ending)
        actions.append(.send(close, to: membership.slot))
    }

    /// Has the policies asked again what a user may do in its private channels. Until they answer, the user keeps its
    /// rights; a user that may no longer read is told so, and its channel ends.
    ///
    /// - Returns: the number of memberships that are asked about.
    package func refreshUser(_ user: Name) -> Int {
        var count = 0
        for connection in context.openConnections {
            for membership in connection.memberships where membership.claims.subject == user {
                guard let grants = membership.grants else { continue }
                authorization.refreshGrants(grants, of: membership, &context)
                count += 1
            }
        }
        return count
    }

    /// Returns the refusal if a backend has barred the bearer of these claims from a channel.
    func barRefusal(of claims: Claims, from key: ChannelKey) -> Refusal? {
        guard let user = claims.subject, let seconds = bars.remainingSeconds(user, key, at: context.now.monotonic)
        else {
            return nil
        }
        return .removed(topic: String(key.name), seconds: seconds)
    }

    /// Returns the channels that a connection is in, at most `limit` of them, and the reported state of its app.
    package func channels(of slot: Slot, limit: Int) -> (channels: [ChannelKey], appState: ReportedAppState?) {
        guard let connection = connection(slot) else { return ([], nil) }
        return (connection.memberships.prefix(limit).map(\.channel.key), connection.appState)
    }
}
