import Wire

/// Row changes: groups of subscribers, and the feed's progress on this loop (wire-protocol A4, A5).
///
/// `CatchUp` handles the changes that a member missed before its live ones.
package struct RowSubscriptions {
    private(set) var groups: [ChangeGroupID: ChangeGroup] = [:]
    package var progress = FeedProgress()
    /// Whether changes are flowing from the database.
    private(set) var isReady = false

    package init() {}

    /// Returns the channel's group for these bindings, registering a new one with the feed. One registration serves all
    /// members with the same request: ten thousand joins of one channel cost the feed one.
    package mutating func registerGroup(
        of channel: LocalChannel, _ subscription: ChangeSubscription, _ hub: inout HubContext
    ) -> ChangeGroup {
        // Found by hash: a channel may have as many groups as members, each with a filter of its own.
        let key = subscription.key
        if let group = channel.groups[key] { return group }
        let id = ChangeGroupID(loop: hub.loop, serial: hub.nextSerial())
        let group = ChangeGroup(id: id, channel: channel, subscription: subscription)
        channel.groups[key] = group
        groups[id] = group
        hub.actions.append(.subscribe(id, subscription))
        return group
    }

    /// Adds a member that asked for changes to the group's subscribers, by its claims. Changes do not reach it yet.
    package func enterGroup(_ group: ChangeGroup, _ membership: Membership, _ hub: inout HubContext) {
        let (principal, isFirst) = group.addSubscriber(membership.claims)
        membership.rows = RowSubscription(group: group, principal: principal)
        if isFirst { hub.actions.append(.admit(group.id, principal.claims)) }
    }

    /// Returns what must be known before changes can reach a member that entered its group. The group informs the
    /// member when the feed answers.
    func needs(of membership: Membership) -> JoinMachine.Needs {
        guard let group = membership.group, group.state == .registering else { return [] }
        group.waiting.addMember(membership)
        return .subscription
    }

    /// Lets changes reach a member; returns false if they already did.
    func startChanges(_ membership: Membership) -> Bool {
        guard let rows = membership.rows, rows.groupIndex == nil else { return false }
        let (slot, version) = (membership.slot, membership.version)
        membership.rows?.groupIndex = rows.group.audience.addSlot(slot, version)
        membership.rows?.principalIndex = rows.principal.audience.addSlot(slot, version)
        membership.rows?.reached = progress.serial
        return true
    }

    /// Moves a member's subscription to other claims and takes the member out of its old group.
    ///
    /// - Returns: the old subscription; nil if the member has none, or already uses these claims.
    mutating func changeClaims(
        _ membership: Membership, to claims: Claims, _ hub: inout HubContext
    ) -> RowSubscription? {
        guard let left = membership.rows, left.principal.claims != claims else { return nil }
        let subscription = ChangeSubscription(
            role: claims.role, bindings: left.group.subscription.bindings, ids: left.group.subscription.ids,
            isLegacy: left.group.subscription.isLegacy)
        // Enter before leaving the old group: leaving discards a group that loses its last member.
        let group = registerGroup(of: membership.channel, subscription, &hub)
        membership.claims = claims
        enterGroup(group, membership, &hub)
        leaveGroup(left, membership, &hub)
        return left
    }

    /// Stops changes from reaching a member for the time being.
    ///
    /// - Returns: whether they did reach it.
    func stopChanges(_ membership: Membership, _ hub: inout HubContext) -> Bool {
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

    /// Removes a member from a group.
    mutating func leaveGroup(_ rows: RowSubscription, _ membership: Membership, _ hub: inout HubContext) {
        let (group, principal, channel) = (rows.group, rows.principal, membership.channel)
        leaveAudiences(rows, membership, &hub)
        if group.removeSubscriber(principal) { hub.actions.append(.withdraw(group.id, principal.claims)) }
        if rows.groupIndex == nil {
            group.waiting.countLeft(by: membership, of: group)
            group.outstanding.countLeft(by: membership, of: group)
        }
        guard group.principals.isEmpty else { return }
        channel.groups[group.subscription.key] = nil
        groups[group.id] = nil
        hub.actions.append(.unsubscribe(group.id))
    }

    /// Returns the members that a group's changes reach.
    func subscribers(of group: ChangeGroup, _ hub: inout HubContext) -> [Membership] {
        group.audience.slots.compactMap { slot in
            hub.member(slot, of: group.channel).flatMap { $0.group === group ? $0 : nil }
        }
    }

    // MARK: Whether changes flow

    /// - Returns: whether changes have started to flow.
    mutating func feedChanged(isReady: Bool) -> Bool {
        defer { self.isReady = isReady }
        return isReady && !self.isReady
    }

    /// Tells a member that asked for it that changes flow, as soon as they do.
    func announceReplication(to membership: Membership, _ hub: inout HubContext) {
        membership.awaitsReplication = !isReady
        guard isReady else { return }
        hub.sendSystemMessage(membership, extension: "system", ok: true, message: "Replication connection established")
    }
}

extension ChangeDelivery {
    /// Returns the name and the payload of the event, the latter in pieces.
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
