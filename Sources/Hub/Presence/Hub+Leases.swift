import Wire

/// Grace: a member that is cut off stays present for a while, and whoever comes back in time was never gone.
extension Hub {
    // MARK: Going

    /// What becomes of a presence whose member is not in the channel any more.
    func releasePresence(of membership: Membership, _ end: MembershipEnd) {
        let channel = membership.channel
        guard channel.presence[membership.presence] != nil else { return }
        let appState = membership.connection.appState
        let window = presenceRules.windows(of: channel.key)[appState]
        guard !end.isFinal, window > 0 || presences.isDraining else {
            return withdrawPresence(membership.presence, in: channel)
        }
        offers.append(
            PresenceLease(
                member: membership.presence, place: membership.presencePlace, key: membership.presenceKey,
                appState: appState, loop: loop, until: latest.monotonic + window))
    }

    package var hasOffers: Bool { !offers.isEmpty }

    /// Lets the other loops have the leases of those who were cut off. To be called when the relays among the actions are
    /// on their way: who takes a presence over on another loop must not be overtaken by what was said of it here.
    package func offerLeases() {
        guard !offers.isEmpty else { return }
        presences.offer(offers)
        offers.removeAll(keepingCapacity: true)
        noteLeases()
    }

    private func noteLeases() {
        if let next = presences.nextEnd(of: loop) { context.schedule(.leases, at: next) }
    }

    func endLeases() {
        // After the hub stood still, those who came back in the meantime have yet to be heard.
        guard latest.monotonic >= context.lateUntil else {
            return context.schedule(.leases, at: context.lateUntil)
        }
        for lease in presences.end(of: loop, at: latest.monotonic) {
            guard let channel = channels[lease.place.channel] else { continue }
            withdrawPresence(lease.member, in: channel)
            discardIfIdle(channel)
        }
        noteLeases()
    }

    /// The client itself joins again under another key: it is not who it was.
    func giveUpPresence(of membership: Membership, unlessFor config: JoinConfig) {
        let isSame =
            membership.hasMadeKey
            ? config.presenceKey == nil : config.presenceKey?.utf8.elementsEqual(membership.presenceKey.utf8) ?? false
        if !isSame { withdrawPresence(membership.presence, in: membership.channel) }
    }

    // MARK: Coming back

    /// A join came in, which may take a while to be answered. Whose presence it is to be is seen to then.
    func expectPresence(of membership: Membership) {
        let place = membership.presencePlace
        guard place.mayReturn else { return }
        let until = latest.monotonic + presenceRules.trackingTime
        if let index = offers.firstIndex(where: { $0.place == place && !$0.isExpected }) {
            offers[index].isExpected = true
            offers[index].until = max(offers[index].until, until)
        } else {
            presences.expect(place, until: until)
        }
    }

    /// A member with a key of its own goes on where it was: it need not say again what the others have never unlearnt.
    /// In a private channel it has to, because it may not be allowed to any more.
    func resumePresence(of membership: Membership) {
        guard membership.pass == nil, membership.presencePlace.key != nil else { return }
        // Of several it is not known which is its own until it says who it is.
        let offered = offers.count { $0.place == membership.presencePlace }
        guard offered + presences.count(of: membership.presencePlace) == 1 else { return }
        takeOverPresence(of: membership, saying: nil)
    }

    /// Makes a lease the member's own, if there is one for it.
    ///
    /// - Parameter payload: what the member is about to say; of several leases, the one that says the same is its own.
    func takeOverPresence(of membership: Membership, saying payload: [UInt8]?) {
        guard membership.presencePlace.mayReturn else { return }
        let (place, presence) = (membership.presencePlace, membership.channel.presence)
        func isBest(_ lease: PresenceLease) -> Bool {
            guard let payload, let meta = presence[lease.member] else { return false }
            return Presence.saysTheSame(meta.payload, payload)
        }
        guard let lease = takeOffer(place, isBest) ?? presences.claim(place, best: isBest) else { return }
        // What the loop that had it said of it before it let go is on its way here, or has arrived.
        hearOthers()
        counters.presenceLeavesAvoided += 1
        membership.presence = lease.member
        membership.presenceKey = lease.key
        if membership.connection.appState == nil { membership.connection.appState = lease.appState }
    }

    private func takeOffer(_ place: PresenceLease.Place, _ isBest: (PresenceLease) -> Bool) -> PresenceLease? {
        let candidates = offers.indices.filter { offers[$0].place == place }
        guard let index = candidates.first(where: { isBest(offers[$0]) }) ?? candidates.first else { return nil }
        return offers.remove(at: index)
    }

    // MARK: After a restart

    /// Shows those who were present when the hub's last process ended, before anybody joins. Their leases are in the book.
    package func restorePresence(_ restored: [PresenceBook.Restored]) {
        for entry in restored {
            let channel = channel(entry.channel)
            var diff = PresenceDiff()
            diff.joins = [entry.meta]
            apply(diff, to: channel)
            _ = channel.presence.tell()
        }
        // Every loop shows them; the sum is to count them once.
        if loop == 0 { counters.presenceJoins += restored.count }
        noteLeases()
    }

    // MARK: Writing down

    func record(of meta: PresenceMeta, _ membership: Membership) -> PresenceRecord {
        PresenceRecord(
            channel: membership.channel.key, ref: meta.ref, key: meta.key,
            hasMadeKey: membership.presencePlace.key == nil, user: membership.claims.subject, payload: meta.payload,
            appState: membership.connection.appState)
    }
}

extension PresenceLease.Place {
    /// Without a user and without a key nobody can be told from anybody.
    var mayReturn: Bool { user != nil || key != nil }
}

extension Membership {
    var presencePlace: PresenceLease.Place {
        PresenceLease.Place(
            channel: channel.key, user: claims.subject, key: hasMadeKey ? nil : Array(presenceKey.utf8))
    }
}
