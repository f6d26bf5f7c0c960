import Wire

/// What a Live Activity shows, for the app that shows it while a socket of it lives.
extension Hub {
    /// Tells the sockets of one user in a channel, and nobody else who joined it.
    package func show(_ summary: ActivitySummary) {
        for isPrivate in [false, true] {
            let key = ChannelKey(topic: summary.topic, isPrivate: isPrivate)
            guard let channel = channels[key] else { continue }
            for slot in channel.members.v1 + channel.members.v2 {
                guard let membership = connection(slot)?.memberships[channel], isUser(summary.user, membership),
                    let frame = Broadcast.text(summary.message).frame(membership.version, in: channel)
                else { continue }
                actions.append(.send(frame, to: slot))
            }
        }
    }

    private func isUser(_ user: String, _ membership: Membership) -> Bool {
        membership.claims.subject.map { $0.utf8.elementsEqual(user.utf8) } ?? false
    }
}
