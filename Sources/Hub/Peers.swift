/// The loops' connection to the other hubs of a cluster. Called from any thread; must not block.
package protocol PeerService: Sendable {
    /// Posts what a loop's hub relays to those of the other loops, in its order.
    func postRelays(_ relays: [Relay], from loop: Int)
}

/// Receives what the other hubs of a cluster did. Called from any thread; must not block.
package protocol PeerSink: Sendable {
    var loopCount: Int { get }

    /// For the hubs of all loops.
    func receiveRelays(_ relays: [Relay])

    /// For the hub of one loop, or of all loops if the member's is unknown: only one has the member.
    func concludeLease(_ conclusion: LeaseConclusion, of member: MemberID, in channel: ChannelKey, loop: Int)
}

/// The certain outcome of a lease, once all hubs agree.
package enum LeaseConclusion: Sendable, Equatable {
    /// The client did not come back to any hub: the presence is withdrawn.
    case isOver
    /// A takeover on this hub came too late: the presence had ended, or another hub has it. The member continues as a
    /// new presence with the same payload (a JSON object; empty if unknown).
    case goesOnAnew(payload: [UInt8])
}

extension Hub {
    package func concludeLease(_ conclusion: LeaseConclusion, of member: MemberID, in key: ChannelKey) {
        switch conclusion {
        case .isOver: leaseIsOver(member, in: key)
        case .goesOnAnew(let payload): goesOnAnew(member, saying: payload, in: key)
        }
    }

    private func leaseIsOver(_ member: MemberID, in key: ChannelKey) {
        guard let channel = channels[key], channel.presence.list[member] != nil else { return }
        // Its join was counted by the other hub.
        if member.isForeign { counters.presenceJoins += 1 }
        presence.withdrawMember(member, in: channel, &context)
        discardIfIdle(channel)
    }

    private func goesOnAnew(_ member: MemberID, saying payload: [UInt8], in key: ChannelKey) {
        guard let channel = channels[key] else { return }
        for connection in context.openConnections {
            guard let membership = connection.memberships[channel], membership.presence.id == member else { continue }
            membership.presence.id = context.nextMember()
            return presence.announceSuccessor(membership, insteadOf: member, saying: payload, in: channel, &context)
        }
    }
}

extension MemberID {
    /// Members of other hubs have loop numbers no lower than this, which stand for a hub's process and one of its
    /// loops.
    package static let firstForeignLoop = 1 << 20

    var isForeign: Bool { loop >= Self.firstForeignLoop }
}
