import Wire

/// Messages that were sent before a member joined (wire-protocol B). Why none is lost or doubled: `PendingReplay`.
extension Hub {
    /// A message from SQL, for the members that wait for the answer to a join with a replay.
    ///
    /// - Parameter withHistory: whether it is passed on to members with history or to the others, who may hear it at
    ///   different moments.
    func keepForReplays(_ message: DatabaseBroadcast, in channel: Channel, withHistory: Bool) {
        for slot in channel.awaitingReplay {
            guard let membership = connections[Int(slot)]?.memberships.first(where: { $0.channel === channel }),
                let pass = membership.pass, (membership.history?.isOff == false) == withHistory
            else { continue }
            heldBytes += pass.replay?.keep(message, limits: limits, room: limits.heldBytes - heldBytes) ?? 0
        }
    }

    /// Sends what was replayed, and then what came by the feed in the meantime. Before the member takes its seat.
    func sendReplay(_ pass: ChannelPass, to membership: Membership, _ slot: Slot, _ version: ProtocolVersion) {
        guard let replay = pass.replay else { return }
        let channel = membership.channel
        for message in replay.messages {
            guard let frame = message.frame(version, joinRef: membership.joinRef, in: channel) else { continue }
            actions.append(.send(frame, to: slot))
        }
        let ids = replay.messages.map(\.id)
        for message in replay.live where !ids.contains(message.id) {
            if let frame = message.broadcast.frame(version, in: channel) { actions.append(.send(frame, to: slot)) }
        }
        endReplay(pass, of: slot, in: channel)
        pass.replayed = ids
        for id in ids { channel.replayed[id, default: []].insert(slot) }
    }

    /// Forgets all that a member's replay left behind.
    func endReplay(_ pass: ChannelPass, of slot: Slot, in channel: Channel) {
        if let replay = pass.replay {
            heldBytes -= replay.bytes
            pass.replay = nil
            channel.awaitingReplay.removeAll { $0 == slot }
        }
        for id in pass.replayed {
            channel.replayed[id]?.remove(slot)
            if channel.replayed[id]?.isEmpty == true { channel.replayed[id] = nil }
        }
        pass.replayed = []
    }
}
