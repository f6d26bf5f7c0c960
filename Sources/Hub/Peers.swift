/// The way to the other hubs of a cluster, as the loops see it. From any thread; must not wait.
package protocol PeerService: Sendable {
    /// What a loop's hub told those of the other loops, in the order in which it did.
    func post(_ relays: [Relay], from loop: Int)
}

/// Where what the other hubs of a cluster did arrives. From any thread; must not wait.
package protocol PeerSink: Sendable {
    var loopCount: Int { get }

    /// For the hubs of all loops.
    func hear(_ relays: [Relay])

    /// For the hub of one loop; or where nobody knows whose it is, of all: only one has the member.
    func conclude(_ conclusion: LeaseConclusion, of member: MemberID, in channel: ChannelKey, loop: Int)
}

/// What is certain of a lease once all hubs have the same word on it.
package enum LeaseConclusion: Sendable, Equatable {
    /// Nobody came back for the member anywhere: it is taken away.
    case isOver
    /// Whoever is here for the member came too late: it had ended, or another hub has it. It goes on as somebody else, saying what the
    /// member said (a JSON object; empty where nobody knows).
    case goesOnAnew(payload: [UInt8])
}

extension Hub {
    package func conclude(_ conclusion: LeaseConclusion, of member: MemberID, in key: ChannelKey) {
        switch conclusion {
        case .isOver: leaseIsOver(member, in: key)
        case .goesOnAnew(let payload): goesOnAnew(member, saying: payload, in: key)
        }
    }

    private func leaseIsOver(_ member: MemberID, in key: ChannelKey) {
        guard let channel = channels[key], channel.presence.list[member] != nil else { return }
        // Its join was counted by the other hub.
        if member.isForeign { counters.presenceJoins += 1 }
        presence.withdraw(member, in: channel, &context)
        discardIfIdle(channel)
    }

    private func goesOnAnew(_ member: MemberID, saying payload: [UInt8], in key: ChannelKey) {
        guard let channel = channels[key] else { return }
        for connection in context.openConnections {
            guard let membership = connection.memberships[channel], membership.presence.id == member else { continue }
            membership.presence.id = context.nextMember()
            return presence.goOn(membership, insteadOf: member, saying: payload, in: channel, &context)
        }
    }
}

extension MemberID {
    /// Members of other hubs have numbers of loops from here on, which stand for a hub's process and one of its loops.
    package static let firstForeignLoop = 1 << 20

    var isForeign: Bool { loop >= Self.firstForeignLoop }
}
