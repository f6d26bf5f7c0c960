package import Wire

/// What a backend does to the members of channels that are a user's, by the claim `sub`.
extension Hub {
    /// Takes a user out of a channel. Its clients are told in a way that is final for them: they do not join again by themselves.
    ///
    /// - Parameter seconds: for which the user is not let in again (`ChannelBars`); nil: the user may join again at once.
    /// - Returns: how many sockets were in it.
    package func unsubscribe(_ user: Name, from key: ChannelKey, seconds: Int?) -> Int {
        guard let channel = channels[key] else { return 0 }
        let refusal = Refusal.removed(topic: String(key.name), seconds: seconds)
        var count = 0
        for connection in context.openConnections {
            guard let membership = connection.memberships[channel], membership.claims.subject == user else { continue }
            end(membership, refusal)
            count += 1
        }
        return count
    }

    /// Ends a channel for good. Only what a backend says is: everything else passes, and is said by `expel`.
    private func end(_ membership: Membership, _ refusal: Refusal) {
        authorization.refuseHeld(of: membership, refusal, &context)
        guard membership.connection.reader == nil else { return close(membership, refusal, .revoked) }
        let isJoined = membership.pending == nil
        if let pending = membership.pending {
            counters.joinsRefused += 1
            context.refuseJoin(pending.ref, of: membership, refusal)
        }
        if isJoined { context.system(membership, extension: "system", ok: false, message: refusal.message) }
        remove(membership, .revoked)
        guard isJoined else { return }
        let close = membership.frames.push(
            "phx_close", joinRef: membership.joinRef, ref: membership.joinRef, payload: refusal.ending)
        actions.append(.send(close, to: membership.slot))
    }

    /// Has the policies asked anew what a user may do in its private channels. Until they answer the user keeps what it has; who may
    /// not read any more is told so, and its channel ends.
    ///
    /// - Returns: how many channels of how many sockets are asked about.
    package func refresh(_ user: Name) -> Int {
        var count = 0
        for connection in context.openConnections {
            for membership in connection.memberships where membership.claims.subject == user {
                guard let grants = membership.grants else { continue }
                authorization.refresh(grants, of: membership, &context)
                count += 1
            }
        }
        return count
    }

    /// Why somebody who brings these claims may not be in a channel now, where a backend has said so.
    func bar(of claims: Claims, from key: ChannelKey) -> Refusal? {
        guard let user = claims.subject, let seconds = bars.seconds(user, key, at: context.now.monotonic) else {
            return nil
        }
        return .removed(topic: String(key.name), seconds: seconds)
    }

    /// The channels that a user's connections are in, by slot: at most so many of each.
    package func channels(of slot: Slot, limit: Int) -> (channels: [ChannelKey], appState: ReportedAppState?) {
        guard let connection = connection(slot) else { return ([], nil) }
        return (connection.memberships.prefix(limit).map(\.channel.key), connection.appState)
    }
}
