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

    /// For the hub of one loop.
    func conclude(_ conclusion: LeaseConclusion, of member: MemberID, in channel: ChannelKey, loop: Int)
}

/// What is certain of a lease once all hubs have the same word on it.
package enum LeaseConclusion: Sendable, Equatable {
    /// `Hub.leaseIsOver`
    case isOver
    /// `Hub.claimIsVoid`, with what the member said of itself.
    case claimIsVoid(payload: [UInt8])
    /// `Hub.memberIsElsewhere`
    case isElsewhere
}

extension Hub {
    package func conclude(_ conclusion: LeaseConclusion, of member: MemberID, in channel: ChannelKey) {
        switch conclusion {
        case .isOver: leaseIsOver(member, in: channel)
        case .claimIsVoid(let payload): claimIsVoid(member, saying: payload, in: channel)
        case .isElsewhere: memberIsElsewhere(member, in: channel)
        }
    }
}

extension MemberID {
    /// Members of other hubs have numbers of loops from here on, which stand for a hub's process and one of its loops.
    package static let firstForeignLoop = 1 << 20

    var isForeign: Bool { loop >= Self.firstForeignLoop }
}
