import Wire

/// Messages that were sent before a member joined (wire-protocol B). Why none is lost or doubled: `PendingReplay`.
extension Hub {
    /// A message from SQL, for the members that wait for the answer to a join with a replay.
    ///
    /// - Parameter withHistory: whether it is passed on to members with history or to the others, who may hear it at
    ///   different moments.
    func keepForReplays(_ message: DatabaseBroadcast, in channel: Channel, withHistory: Bool) {
        for membership in channel.awaitingReplay {
            guard let pass = membership.pass, (membership.history?.isOff == false) == withHistory
            else { continue }
            heldBytes += pass.replay?.keep(message, limits: limits, room: limits.heldBytes - heldBytes) ?? 0
        }
    }

    /// Sends what was replayed, and then what came by the feed in the meantime. Before the member takes its seat.
    func sendReplay(_ pass: ChannelPass, to membership: Membership) {
        guard let replay = pass.replay else { return }
        let (channel, slot, version) = (membership.channel, membership.slot, membership.version)
        for message in replay.messages {
            guard let frame = message.frame(version, joinRef: membership.joinRef, in: channel) else { continue }
            actions.append(.send(frame, to: slot))
        }
        let ids = replay.messages.map(\.id)
        for message in replay.live where !ids.contains(message.id) {
            if let frame = message.broadcast.frame(version, in: channel) { actions.append(.send(frame, to: slot)) }
        }
        endReplay(pass, of: membership)
        pass.replayed = ids
        for id in ids { channel.replayed[id, default: []].insert(slot) }
    }

    /// Forgets all that a member's replay left behind.
    func endReplay(_ pass: ChannelPass, of membership: Membership) {
        let channel = membership.channel
        if let replay = pass.replay {
            heldBytes -= replay.bytes
            pass.replay = nil
            channel.awaitingReplay.removeAll { $0 === membership }
        }
        for id in pass.replayed {
            channel.replayed[id]?.remove(membership.slot)
            if channel.replayed[id]?.isEmpty == true { channel.replayed[id] = nil }
        }
        pass.replayed = []
    }
}
