import Wire

/// Grace: a member that is cut off stays present for a while, and whoever comes back in time was never gone.
extension Presence {
    // MARK: Going

    /// What becomes of a presence whose member is not in the channel any more.
    mutating func release(_ membership: Membership, _ end: MembershipEnd, _ hub: inout HubContext) {
        let channel = membership.channel
        guard channel.presence.list[membership.presence.id] != nil else { return }
        let appState = membership.connection.appState
        let window = rules.windows(of: channel.key)[appState]
        guard !end.isFinal, window > 0 || leases.shared.isDraining else {
            return withdraw(membership.presence.id, in: channel, &hub)
        }
        leases.add(
            PresenceLease(
                member: membership.presence.id, place: membership.presencePlace, key: membership.presence.key,
                appState: appState, loop: hub.loop, until: hub.now.monotonic + window))
        if hub.hasPeers { hub.relay(.lease(channel.key, .lost(membership.presence.id, for: window))) }
    }

    /// Lets the other loops have the leases of those who were cut off. To be called when the relays among the actions are
    /// on their way: who takes a presence over on another loop must not be overtaken by what was said of it here.
    mutating func offerLeases(_ hub: inout HubContext) {
        guard leases.hasOffers else { return }
        leases.offer()
        scheduleLeases(&hub)
    }

    func scheduleLeases(_ hub: inout HubContext) {
        if let next = leases.shared.nextEnd(of: hub.loop) { hub.schedule(.leases, at: next) }
    }

    /// Ends what was lost for too long: the duty `.leases`. Where there are other hubs, that is proposed to all, as its client
    /// may be back on another one.
    ///
    /// - Returns: the channels in which somebody is gone.
    mutating func endLeases(in channels: [ChannelKey: LocalChannel], _ hub: inout HubContext) -> [LocalChannel] {
        // After the hub stood still, those who came back in the meantime have yet to be heard.
        guard hub.now.monotonic >= hub.lateUntil else {
            hub.schedule(.leases, at: hub.lateUntil)
            return []
        }
        var touched: [LocalChannel] = []
        for lease in leases.shared.end(of: hub.loop, at: hub.now.monotonic) {
            guard let channel = channels[lease.place.channel] else { continue }
            guard !hub.hasPeers else {
                hub.relay(.lease(channel.key, .over(lease.member)))
                continue
            }
            withdraw(lease.member, in: channel, &hub)
            touched.append(channel)
        }
        scheduleLeases(&hub)
        return touched
    }

    /// The client itself joins again: under another key, it is not who it was.
    mutating func replace(_ membership: Membership, by config: JoinConfig, _ hub: inout HubContext) {
        let isSame =
            membership.presence.hasMadeKey
            ? config.presenceKey == nil
            : config.presenceKey?.utf8.elementsEqual(membership.presence.key.utf8) ?? false
        if !isSame { withdraw(membership.presence.id, in: membership.channel, &hub) }
    }

    // MARK: Coming back

    /// A join came in, which may take a while to be answered. Whose presence it is to be is seen to then.
    mutating func expect(_ membership: Membership, _ hub: inout HubContext) {
        let place = membership.presencePlace
        guard place.mayReturn,
            let lease = leases.expect(place, until: hub.now.monotonic + rules.trackingTime), lease.isElsewhere
        else { return }
        hub.relay(.lease(place.channel, .expected(lease.member, for: rules.trackingTime)))
    }

    /// A member with a key of its own goes on where it was: it need not say again what the others have never unlearnt.
    /// In a private channel it has to, because it may not be allowed to any more.
    ///
    /// - Returns: whether it took a lease over, so that what the other loops said of it has to be heard.
    mutating func resume(_ membership: Membership, _ hub: inout HubContext) -> Bool {
        guard membership.grants == nil, !membership.presence.hasMadeKey else { return false }
        // Of several it is not known which is its own until it says who it is.
        guard leases.count(of: membership.presencePlace) == 1 else { return false }
        return takeOver(membership, saying: nil, &hub)
    }

    /// Makes a lease the member's own, if there is one for it.
    ///
    /// - Parameter payload: what the member is about to say; of several leases, the one that says the same is its own.
    /// - Returns: whether there was one.
    mutating func takeOver(_ membership: Membership, saying payload: [UInt8]?, _ hub: inout HubContext) -> Bool {
        let place = membership.presencePlace
        guard place.mayReturn else { return false }
        let channel = membership.channel
        let taken = leases.claim(place) { lease in
            guard let payload, let meta = channel.presence.list[lease.member] else { return false }
            return PresenceList.saysTheSame(meta.payload, payload)
        }
        guard let taken else { return false }
        hub.counters.presenceLeavesAvoided += 1
        membership.presence.id = taken.member
        membership.presence.key = taken.key
        if membership.connection.appState == nil { membership.connection.appState = taken.appState }
        if taken.isElsewhere { hub.counters.presenceJoins += 1 }
        // Also where it was lost here: the others know that.
        if hub.hasPeers { hub.relay(.lease(channel.key, .claimed(taken.member, loop: hub.loop))) }
        return true
    }
}

extension PresenceLease.Place {
    /// Without a user and without a key nobody can be told from anybody.
    fileprivate var mayReturn: Bool { user != nil || key != nil }
}

extension Membership {
    fileprivate var presencePlace: PresenceLease.Place {
        PresenceLease.Place(
            channel: channel.key, user: claims.subject, key: presence.givenKey.map { Array($0.utf8) })
    }
}
