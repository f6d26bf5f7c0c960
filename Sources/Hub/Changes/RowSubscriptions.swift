import Wire

/// Row changes: groups of subscribers, and how far the feed has come on this loop (wire-protocol A4, A5).
///
/// What each of them missed before its changes come live is `CatchUp`'s.
package struct RowSubscriptions {
    private(set) var groups: [ChangeGroupID: ChangeGroup] = [:]
    package var progress = FeedProgress()
    /// Whether changes are flowing from the database.
    private(set) var isReady = false

    package init() {}

    /// The channel's group for these bindings, told to the feed when it is new. One registration serves all members who
    /// ask for the same: ten thousand joins of one channel cost the feed one.
    package mutating func group(
        of channel: LocalChannel, _ subscription: ChangeSubscription, _ hub: inout HubContext
    ) -> ChangeGroup {
        // Found by its hash: on one channel there may be as many groups as members, each with a filter of its own.
        let key = subscription.key
        if let group = channel.groups[key] { return group }
        let id = ChangeGroupID(loop: hub.loop, serial: hub.nextSerial())
        let group = ChangeGroup(id: id, channel: channel, subscription: subscription)
        channel.groups[key] = group
        groups[id] = group
        hub.actions.append(.subscribe(id, subscription))
        return group
    }

    /// Puts a member that asked for changes among the group's subscribers, by its claims. Changes do not reach it yet.
    package func enter(_ group: ChangeGroup, _ membership: Membership, _ hub: inout HubContext) {
        let (principal, isFirst) = group.enter(membership.claims)
        membership.rows = RowSubscription(group: group, principal: principal)
        if isFirst { hub.actions.append(.admit(group.id, principal.claims)) }
    }

    /// What has to be known before changes can reach a member that entered its group. The group tells it when the feed
    /// answers.
    func needs(of membership: Membership) -> JoinMachine.Needs {
        guard let group = membership.group, group.state == .registering else { return [] }
        group.waiting.add(membership)
        return .subscription
    }

    /// Changes reach a member from here on; false where they did already.
    func start(_ membership: Membership) -> Bool {
        guard let rows = membership.rows, rows.groupIndex == nil else { return false }
        let (slot, version) = (membership.slot, membership.version)
        membership.rows?.groupIndex = rows.group.audience.add(slot, version)
        membership.rows?.principalIndex = rows.principal.audience.add(slot, version)
        membership.rows?.reached = progress.serial
        return true
    }

    /// Takes a member's subscription over to other claims. The group before is to be left (`leave`), after that.
    ///
    /// - Returns: what it leaves; nil where it has no subscription, or one with these claims.
    mutating func change(
        _ membership: Membership, to claims: Claims, _ hub: inout HubContext
    ) -> RowSubscription? {
        guard let left = membership.rows, left.principal.claims != claims else { return nil }
        let subscription = ChangeSubscription(
            role: claims.role, bindings: left.group.subscription.bindings, ids: left.group.subscription.ids,
            isLegacy: left.group.subscription.isLegacy)
        // Before the old group is left, which would be given up where this was its last member.
        let group = group(of: membership.channel, subscription, &hub)
        membership.claims = claims
        enter(group, membership, &hub)
        leave(left, membership, &hub)
        return left
    }

    /// Changes reach a member no more, for the time being.
    ///
    /// - Returns: whether they did.
    func stop(_ membership: Membership, _ hub: inout HubContext) -> Bool {
        guard let rows = membership.rows, rows.groupIndex != nil else { return false }
        leaveAudiences(rows, membership, &hub)
        membership.rows?.groupIndex = nil
        membership.rows?.principalIndex = nil
        return true
    }

    private func leaveAudiences(_ rows: RowSubscription, _ membership: Membership, _ hub: inout HubContext) {
        let (group, principal, channel, version) = (
            rows.group, rows.principal, membership.channel, membership.version
        )
        if let index = rows.groupIndex, let moved = group.audience.remove(at: index, version) {
            hub.member(moved, of: channel)?.rows?.groupIndex = index
        }
        if let index = rows.principalIndex, let moved = principal.audience.remove(at: index, version) {
            hub.member(moved, of: channel)?.rows?.principalIndex = index
        }
    }

    /// Takes a member out of a group.
    mutating func leave(_ rows: RowSubscription, _ membership: Membership, _ hub: inout HubContext) {
        let (group, principal, channel) = (rows.group, rows.principal, membership.channel)
        leaveAudiences(rows, membership, &hub)
        if group.exit(principal) { hub.actions.append(.withdraw(group.id, principal.claims)) }
        if rows.groupIndex == nil {
            group.waiting.isLeft(by: membership, of: group)
            group.outstanding.isLeft(by: membership, of: group)
        }
        guard group.principals.isEmpty else { return }
        channel.groups[group.subscription.key] = nil
        groups[group.id] = nil
        hub.actions.append(.unsubscribe(group.id))
    }

    /// Those whom a group's changes reach.
    func subscribers(of group: ChangeGroup, _ hub: inout HubContext) -> [Membership] {
        group.audience.slots.compactMap { slot in
            hub.member(slot, of: group.channel).flatMap { $0.group === group ? $0 : nil }
        }
    }

    // MARK: Whether changes flow

    /// - Returns: whether they begin to flow.
    mutating func feed(isReady: Bool) -> Bool {
        defer { self.isReady = isReady }
        return isReady && !self.isReady
    }

    /// Tells a member that asked for it that changes flow, as soon as they do.
    func announceReplication(to membership: Membership, _ hub: inout HubContext) {
        membership.awaitsReplication = !isReady
        guard isReady else { return }
        hub.system(membership, extension: "system", ok: true, message: "Replication connection established")
    }
}

extension ChangeDelivery {
    /// Its event and payload, in pieces.
    func event(isLegacy: Bool) -> (StaticString, [ArraySlice<UInt8>]) {
        if isLegacy {
            let event: StaticString =
                switch operation {
                case .insert: "INSERT"
                case .update: "UPDATE"
                case .delete: "DELETE"
                }
            return (event, [data[...]])
        }
        var head = Array("{\"ids\":[".utf8)
        for (position, id) in ids.enumerated() {
            if position > 0 { head.append(UInt8(ascii: ",")) }
            head += String(id).utf8
        }
        head += "],\"data\":".utf8
        let tail = (isSnapshot ? ",\"snapshot\":true" : "") + (cursor.isEmpty ? "}" : ",\"cursor\":\"\(cursor)\"}")
        return ("postgres_changes", [head[...], data[...], Array(tail.utf8)[...]])
    }
}
