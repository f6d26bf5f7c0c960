import Wire

/// Grace: a member that is cut off stays present for a while, and one that comes back in time was never gone.
extension Presence {
    // MARK: Leaving

    /// Withdraws the presence of a member that has left its channel, or gives it a lease.
    mutating func removeMember(_ membership: Membership, _ end: MembershipEnd, _ hub: inout HubContext) {
        let channel = membership.channel
        guard channel.presence.list[membership.presence.id] != nil else { return }
        let appState = membership.connection.appState
        let window = rules.windows(of: channel.key)[appState]
        guard !end.isFinal, window > 0 || leases.shared.isDraining else {
            return withdrawMember(membership.presence.id, in: channel, &hub)
        }
        leases.addLease(
            PresenceLease(
                member: membership.presence.id, place: membership.presencePlace, key: membership.presence.key,
                appState: appState, loop: hub.loop, until: hub.now.monotonic + window))
        if hub.hasPeers { hub.sendRelay(.lease(channel.key, .lost(membership.presence.id, for: window))) }
    }

    /// Shares the leases of members that were cut off with the other loops. Call when the relays among the actions are
    /// on their way: a takeover on another loop must not overtake what was said about the presence here.
    mutating func offerLeases(_ hub: inout HubContext) {
        guard leases.hasOffers else { return }
        leases.offerLeases()
        scheduleLeases(&hub)
    }

    func scheduleLeases(_ hub: inout HubContext) {
        if let next = leases.shared.nextEnd(of: hub.loop) { hub.scheduleDuty(.leases, at: next) }
    }

    /// Ends leases that are over (the duty `.leases`). With other hubs, the end is only proposed to all, as the client
    /// may be back on another one.
    ///
    /// - Returns: the channels in which a presence ended.
    mutating func endLeases(in channels: [ChannelKey: LocalChannel], _ hub: inout HubContext) -> [LocalChannel] {
        // After the hub stood still, messages of clients that came back in the meantime have yet to be read.
        guard hub.now.monotonic >= hub.lateUntil else {
            hub.scheduleDuty(.leases, at: hub.lateUntil)
            return []
        }
        var touched: [LocalChannel] = []
        for lease in leases.shared.endLeases(of: hub.loop, at: hub.now.monotonic) {
            guard let channel = channels[lease.place.channel] else { continue }
            guard !hub.hasPeers else {
                hub.sendRelay(.lease(channel.key, .over(lease.member)))
                continue
            }
            withdrawMember(lease.member, in: channel, &hub)
            touched.append(channel)
        }
        scheduleLeases(&hub)
        return touched
    }

    /// Handles a rejoin by the client itself: under another key it is a different presence.
    mutating func replaceMember(_ membership: Membership, by config: JoinConfig, _ hub: inout HubContext) {
        let isSame =
            membership.presence.hasMadeKey
            ? config.presenceKey == nil
            : config.presenceKey?.utf8.elementsEqual(membership.presence.key.utf8) ?? false
        if !isSame { withdrawMember(membership.presence.id, in: membership.channel, &hub) }
    }

    // MARK: Coming back

    /// Extends a lease for a join that has come in and may take a while to be answered; whose presence it takes over is
    /// decided then.
    mutating func expectOwner(_ membership: Membership, _ hub: inout HubContext) {
        let place = membership.presencePlace
        guard place.mayReturn,
            let lease = leases.expectOwner(place, until: hub.now.monotonic + rules.trackingTime), lease.isElsewhere
        else { return }
        hub.sendRelay(.lease(place.channel, .expected(lease.member, for: rules.trackingTime)))
    }

    /// Resumes the presence of a member with a key of its own, which need not repeat what the others still know. In a
    /// private channel it must track again, because it may no longer be allowed to.
    ///
    /// - Returns: whether it took over a lease, so that the other loops' relays about it have to be applied.
    mutating func resumePresence(_ membership: Membership, _ hub: inout HubContext) -> Bool {
        guard membership.grants == nil, !membership.presence.hasMadeKey else { return false }
        // With several leases, it is unknown which is the member's own until it tracks.
        guard leases.count(of: membership.presencePlace) == 1 else { return false }
        return takeOver(membership, saying: nil, &hub)
    }

    /// Makes a lease the member's own, if there is one for it.
    ///
    /// - Parameter payload: what the member is about to track; of several leases, the one with the same payload is its
    ///   own.
    /// - Returns: whether there was one.
    mutating func takeOver(_ membership: Membership, saying payload: [UInt8]?, _ hub: inout HubContext) -> Bool {
        let place = membership.presencePlace
        guard place.mayReturn else { return false }
        let channel = membership.channel
        let taken = leases.claimLease(place) { lease in
            guard let payload, let meta = channel.presence.list[lease.member] else { return false }
            return PresenceList.saysTheSame(meta.payload, payload)
        }
        guard let taken else { return false }
        hub.counters.presenceLeavesAvoided += 1
        membership.presence.id = taken.member
        membership.presence.key = taken.key
        if membership.connection.appState == nil { membership.connection.appState = taken.appState }
        if taken.isElsewhere { hub.counters.presenceJoins += 1 }
        // Relayed even if the lease was this hub's own: the others know that the member was lost.
        if hub.hasPeers { hub.sendRelay(.lease(channel.key, .claimed(taken.member, loop: hub.loop))) }
        return true
    }
}

extension PresenceLease.Place {
    /// Without a user and without a key, clients cannot be told apart.
    fileprivate var mayReturn: Bool { user != nil || key != nil }
}

extension Membership {
    fileprivate var presencePlace: PresenceLease.Place {
        PresenceLease.Place(
            channel: channel.key, user: claims.subject, key: presence.givenKey.map { Array($0.utf8) })
    }
}
