import Wire

/// Row changes: groups of subscribers, and what the feed answers and delivers (wire-protocol A4, A5).
extension Hub {
    /// The channel's group for these bindings, told to the feed when it is new. One registration serves all members who
    /// ask for the same: ten thousand joins of one channel cost the feed one.
    func group(of channel: Channel, _ subscription: ChangeSubscription) -> ChangeGroup {
        if let group = channel.groups.first(where: { $0.subscription.isSame(as: subscription) }) { return group }
        let id = ChangeGroupID(loop: loop, serial: nextSerial())
        let group = ChangeGroup(id: id, channel: channel, subscription: subscription)
        channel.groups.append(group)
        groups[group.id] = group
        actions.append(.subscribe(group.id, subscription))
        return group
    }

    /// Takes a member's subscription over to another role, when its token changed. A new "Subscribed to PostgreSQL" follows.
    func resubscribe(at index: Int, of slot: Slot, as role: String) {
        guard let connection = connections[Int(slot)] else { return }
        let membership = connection.memberships[index]
        guard let old = membership.group, old.subscription.role != role, membership.groupSeat != nil else { return }
        let subscription = ChangeSubscription(
            role: role, bindings: old.subscription.bindings, ids: old.subscription.ids,
            isLegacy: old.subscription.isLegacy)
        let group = group(of: membership.channel, subscription)
        leaveGroup(old, of: membership.channel, membership, slot, connection.version)
        connections[Int(slot)]?.memberships[index].group = group
        connections[Int(slot)]?.memberships[index].groupSeat = group.audience.add(slot, connection.version)
        if let moved = connections[Int(slot)]?.memberships[index] { systemState(of: group, to: moved, slot) }
    }

    func leaveGroup(
        _ group: ChangeGroup, of channel: Channel, _ membership: Membership, _ slot: Slot, _ version: ProtocolVersion
    ) {
        if let seat = membership.groupSeat, let moved = group.audience.remove(at: seat, version) {
            reseat(moved, in: channel, \.groupSeat, seat)
        }
        if membership.pending != nil { group.waiting.removeAll { $0 == slot } }
        guard group.audience.isEmpty, group.waiting.isEmpty else { return }
        channel.groups.removeAll { $0 === group }
        groups[group.id] = nil
        actions.append(.unsubscribe(group.id))
    }

    /// The feed's word on a subscription: at first, and whenever it changes (a table is watched, dropped, altered).
    package func changeSubscription(_ id: ChangeGroupID, is outcome: ChangeSubscriptionOutcome) {
        guard let group = groups[id] else { return }
        let before = group.state
        switch outcome {
        case .live: group.state = .live
        case .failed(let message): group.state = .failed(message)
        case .unavailable:
            guard before == .registering else { return }
            return refuseWaiting(group, .databaseUnavailable)
        }
        if before != group.state { announceState(of: group) }
        let waiting = group.waiting
        group.waiting = []
        for slot in waiting {
            if let index = connections[Int(slot)]?.memberships.firstIndex(where: { $0.group === group }) {
                completeJoin(at: index, of: slot)
            }
        }
    }

    /// Without a database nothing can be promised: clients are told to come again.
    private func refuseWaiting(_ group: ChangeGroup, _ refusal: Refusal) {
        for slot in group.waiting {
            guard let index = connections[Int(slot)]?.memberships.firstIndex(where: { $0.group === group }),
                let membership = connections[Int(slot)]?.memberships[index], let pending = membership.pending,
                let version = connections[Int(slot)]?.version
            else { continue }
            let reply = membership.channel.frames(version).reply(
                joinRef: membership.joinRef, ref: pending.ref, ok: false, response: refusal.response)
            actions.append(.send(reply, to: slot))
            removeMembership(at: index, of: slot)
        }
    }

    func systemState(of group: ChangeGroup, to membership: Membership, _ slot: Slot) {
        switch group.state {
        case .registering: break
        case .live:
            system(membership, slot, extension: "postgres_changes", ok: true, message: "Subscribed to PostgreSQL")
        case .failed(let message):
            system(membership, slot, extension: "postgres_changes", ok: false, message: message)
        }
    }

    private func announceState(of group: ChangeGroup) {
        for slot in group.audience.v1 + group.audience.v2 {
            guard let membership = connections[Int(slot)]?.memberships.first(where: { $0.group === group }) else {
                continue
            }
            systemState(of: group, to: membership, slot)
        }
    }

    /// One change for a group of subscribers: one frame for each protocol version, whatever their number.
    package func deliver(_ change: ChangeDelivery) {
        guard let group = groups[change.group], !group.audience.isEmpty else { return }
        if group.subscription.isLegacy {
            let event: StaticString =
                switch change.operation {
                case .insert: "INSERT"
                case .update: "UPDATE"
                case .delete: "DELETE"
                }
            return fanOut(event, [change.data[...]], in: group.channel, to: group.audience)
        }
        var head = Array("{\"ids\":[".utf8)
        for (position, id) in change.ids.enumerated() {
            if position > 0 { head.append(UInt8(ascii: ",")) }
            head += String(id).utf8
        }
        head += "],\"data\":".utf8
        fanOut("postgres_changes", [head[...], change.data[...], [0x7D]], in: group.channel, to: group.audience)
    }

    // MARK: The feed's state

    package func feed(isReady: Bool) {
        let wasReady = feedIsReady
        feedIsReady = isReady
        guard isReady, !wasReady else { return }
        for slot in connections.indices {
            for index in connections[slot]?.memberships.indices ?? 0..<0
            where connections[slot]?.memberships[index].awaitsReplication == true {
                announceReplication(to: index, of: Slot(slot))
            }
        }
    }

    func announceReplication(to index: Int, of slot: Slot) {
        connections[Int(slot)]?.memberships[index].awaitsReplication = !feedIsReady
        guard feedIsReady, let membership = connections[Int(slot)]?.memberships[index] else { return }
        system(membership, slot, extension: "system", ok: true, message: "Replication connection established")
    }
}

/// What became of a subscription in the change feed.
package enum ChangeSubscriptionOutcome: Sendable {
    /// Every commit from now on is delivered.
    case live
    /// It cannot be served as it is; the sentence says why and what to do. The feed tries again by itself.
    case failed(String)
    /// The database was never reached, so nothing is known of its tables.
    case unavailable
}
