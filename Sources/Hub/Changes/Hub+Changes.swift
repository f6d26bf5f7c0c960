import Wire

/// Row changes: groups of subscribers, and what the feed answers and delivers (wire-protocol A4, A5).
extension Hub {
    /// The channel's group for these bindings, told to the feed when it is new. One registration serves all members who
    /// ask for the same: ten thousand joins of one channel cost the feed one.
    func group(of channel: Channel, _ subscription: ChangeSubscription) -> ChangeGroup {
        if let group = channel.groups.first(where: { $0.subscription.isSame(as: subscription) }) { return group }
        let id = ChangeGroupID(loop: loop, serial: context.nextSerial())
        let group = ChangeGroup(id: id, channel: channel, subscription: subscription)
        channel.groups.append(group)
        groups[group.id] = group
        actions.append(.subscribe(group.id, subscription))
        return group
    }

    /// Puts a membership that asked for changes among the group's subscribers, by its claims; it has no seat yet.
    func enter(_ group: ChangeGroup, _ membership: Membership) {
        let (principal, isFirst) = group.enter(membership.claims)
        membership.group = group
        membership.principal = principal
        if isFirst { actions.append(.admit(group.id, principal.claims)) }
    }

    /// Seats a member whose join is answered: changes reach it from here on.
    func seatInGroup(_ membership: Membership) {
        guard let group = membership.group, membership.groupSeat == nil else { return }
        membership.recovery?.session.isSeated(provenFrom: membership.connection.nextProof)
        membership.groupSeat = group.audience.add(membership.slot, membership.version)
        membership.principalSeat = membership.principal?.audience.add(membership.slot, membership.version)
        systemState(of: group, to: membership)
    }

    /// Takes a member's subscription over to other claims, when its token changed. A new "Subscribed to PostgreSQL"
    /// follows, as in the original.
    func resubscribe(_ membership: Membership, as claims: Claims) {
        guard let left = membership.place, membership.principal?.claims != claims else { return }
        let subscription = ChangeSubscription(
            role: claims.role, bindings: left.group.subscription.bindings, ids: left.group.subscription.ids,
            isLegacy: left.group.subscription.isLegacy)
        // Before the old group is left, which would be given up where this was its last member.
        let group = group(of: membership.channel, subscription)
        membership.claims = claims
        enter(group, membership)
        membership.groupSeat = nil
        membership.principalSeat = nil
        leave(left, membership)
        startAnew(membership, wasSeated: left.groupSeat != nil, in: group)
        handle(.rowChangesRestarted(needsOfRowChanges(membership)), of: membership)
    }

    /// What has to be known before row changes can reach a member that entered its group. The group tells it when the feed
    /// answers.
    func needsOfRowChanges(_ membership: Membership) -> JoinMachine.Needs {
        var needs: JoinMachine.Needs = []
        if let group = membership.group, group.state == .registering {
            group.waiting.append(membership)
            needs.insert(.subscription)
        }
        if membership.recovery?.arrival != nil { needs.insert(.session) }
        return needs
    }

    /// Takes a member out of its group.
    func leave(_ place: ChangePlace, _ membership: Membership) {
        let (group, principal) = (place.group, place.principal)
        let (channel, version) = (membership.channel, membership.version)
        if let seat = place.groupSeat, let moved = group.audience.remove(at: seat, version) {
            reseat(moved, in: channel, \.groupSeat, seat)
        }
        if let seat = place.principalSeat, let moved = principal.audience.remove(at: seat, version) {
            reseat(moved, in: channel, \.principalSeat, seat)
        }
        if group.exit(principal) { actions.append(.withdraw(group.id, principal.claims)) }
        if place.groupSeat == nil {
            group.waiting.removeAll { $0 === membership }
            group.outstanding.removeAll { $0 === membership }
        }
        guard group.principals.isEmpty else { return }
        channel.groups.removeAll { $0 === group }
        groups[group.id] = nil
        actions.append(.unsubscribe(group.id))
    }

    /// The feed's word on a subscription: at first, and whenever it changes (a table is watched, dropped, altered).
    package func changeSubscription(_ id: ChangeGroupID, is outcome: ChangeSubscriptionOutcome) {
        guard let group = groups[id] else { return }
        let before = group.state
        let complaints = group.complaints
        group.complaints = []
        switch outcome {
        case .live: becomesLive(group, complaints: [])
        case .partly(let complaints): becomesLive(group, complaints: complaints)
        case .failed(let message):
            group.state = .failed(message)
            group.liveMark = nil
        case .unavailable:
            group.complaints = complaints
            guard before == .registering else { return }
            return refuseWaiting(group, .databaseUnavailable)
        }
        if before != group.state || !complaints.isEmpty && group.complaints.isEmpty {
            announceState(of: group)
        } else if complaints != group.complaints {
            announceComplaints(of: group)
        }
        let waiting = group.waiting
        group.waiting = []
        for membership in waiting where membership.isIn(group) { handle(.met(.subscription), of: membership) }
        guard group.state == .live else { return }
        let outstanding = group.outstanding
        group.outstanding = []
        for membership in outstanding where membership.isIn(group) { askForMissed(by: membership) }
    }

    /// Without a database nothing can be promised: clients are told to come again.
    private func refuseWaiting(_ group: ChangeGroup, _ refusal: Refusal) {
        for membership in group.waiting where membership.isIn(group) {
            handle(.failed(.subscription, refusal), of: membership)
        }
    }

    private func becomesLive(_ group: ChangeGroup, complaints: [SubscriptionComplaint]) {
        if group.state != .live { group.liveMark = mark }
        group.state = .live
        group.complaints = complaints
    }

    func systemState(of group: ChangeGroup, to membership: Membership) {
        switch group.state {
        case .registering: break
        case .live:
            // A client that resumes by cursors has one from here on, even if no change ever comes.
            let cursor = membership.recovery?.isReported == true ? membership.recovery?.cursor : nil
            context.system(
                membership, extension: "postgres_changes", ok: true, message: "Subscribed to PostgreSQL",
                cursor: cursor)
            complain(about: group, to: membership)
        case .failed(let message):
            context.system(membership, extension: "postgres_changes", ok: false, message: message)
            // The Python client takes it for the end of the channel, and joins again some time.
            membership.recovery?.session.mayBeIgnored(until: latest.monotonic + book.patience)
        }
    }

    /// Says which of the bindings are not served, behind the word that the others are.
    private func complain(about group: ChangeGroup, to membership: Membership) {
        for complaint in group.complaints {
            context.system(
                membership, extension: "postgres_changes", ok: !complaint.isError, message: complaint.message)
        }
        if group.complaints.contains(where: \.isError) {
            // As with a subscription that failed as a whole.
            membership.recovery?.session.mayBeIgnored(until: latest.monotonic + book.patience)
        }
    }

    private func announceState(of group: ChangeGroup) {
        forEachSeated(in: group) { systemState(of: group, to: $0) }
    }

    private func announceComplaints(of group: ChangeGroup) {
        forEachSeated(in: group) { complain(about: group, to: $0) }
    }

    private func forEachSeated(in group: ChangeGroup, _ body: (Membership) -> Void) {
        for slot in group.audience.v1 + group.audience.v2 {
            if let membership = connection(slot)?.memberships[group.channel], membership.group === group {
                body(membership)
            }
        }
    }

    /// What the feed read, in the order it was committed.
    package func deliver(_ event: FeedEvent) {
        switch event {
        case .change(let change): deliver(change)
        case .broadcast(let message): deliver(message)
        case .recovery(let id, let step): recovery(id, step)
        case .boundary(let mark):
            self.mark = max(self.mark, mark)
            passed = nil
            isPassedInPart = false
        case .withheld: isPassedInPart = true
        case .gap: changesAreGone()
        }
    }

    /// Nobody knows whom they concerned: whoever hears row changes has to join again, and is told then what it lacks
    /// (`RecoveryRefusal.tooOld`). Who waits for its join to be answered is told nothing yet.
    private func changesAreGone() {
        isPassedInPart = true
        for connection in connections.lazy.compactMap({ $0 }) {
            for membership in connection.memberships.reversed()
            where membership.group != nil && membership.join.isJoined {
                expel(membership, .changesLost)
            }
        }
    }

    /// One change for a group of subscribers: one frame for each protocol version, whatever their number.
    private func deliver(_ change: ChangeDelivery) {
        if !change.cursor.isEmpty, !isPassedInPart { passed = change.cursor }
        guard let group = groups[change.group] else { return }
        let audience: Audience
        switch change.recipients {
        case .everybody: audience = group.audience
        case .bearers(let claims): audience = Audience(joining: claims.compactMap { group.principals[$0]?.audience })
        }
        if change.operation == .insert {
            typing.end(ofAuthorOf: JSON(trusted: change.data[...]), in: group.channel, &context)
        }
        guard !audience.isEmpty else { return }
        let (event, payload) = Self.frame(of: change, isLegacy: group.subscription.isLegacy)
        context.fanOut(event, payload, in: group.channel, to: audience, kind: .change)
    }

    /// A change's event and payload, in pieces.
    static func frame(of change: ChangeDelivery, isLegacy: Bool) -> (StaticString, [ArraySlice<UInt8>]) {
        if isLegacy {
            let event: StaticString =
                switch change.operation {
                case .insert: "INSERT"
                case .update: "UPDATE"
                case .delete: "DELETE"
                }
            return (event, [change.data[...]])
        }
        var head = Array("{\"ids\":[".utf8)
        for (position, id) in change.ids.enumerated() {
            if position > 0 { head.append(UInt8(ascii: ",")) }
            head += String(id).utf8
        }
        head += "],\"data\":".utf8
        let tail = change.cursor.isEmpty ? "}" : ",\"cursor\":\"\(change.cursor)\"}"
        return ("postgres_changes", [head[...], change.data[...], Array(tail.utf8)[...]])
    }

    /// A message that SQL sent. Every loop hears it from the feed, so it is not relayed.
    private func deliver(_ message: DatabaseBroadcast) {
        history.keep(message, &context)
        guard let channel = channels[message.key] else { return }
        typing.end(ofAuthorOf: message.insert, in: channel, &context)
        keepForReplays(message, in: channel, withHistory: false)
        let audience = channel.replayed[message.id].map { channel.members.without($0) } ?? channel.members
        context.deliver(message.broadcast, in: channel, to: audience, except: nil)
        passOnNews(in: channel)
    }

    // MARK: The feed's state

    package func feed(isReady: Bool) {
        let wasReady = feedIsReady
        feedIsReady = isReady
        book.feed(isReady: isReady, at: latest)
        guard isReady, !wasReady else { return }
        for connection in connections.lazy.compactMap({ $0 }) {
            for membership in connection.memberships where membership.awaitsReplication {
                announceReplication(to: membership)
            }
        }
    }

    func announceReplication(to membership: Membership) {
        membership.awaitsReplication = !feedIsReady
        guard feedIsReady else { return }
        context.system(membership, extension: "system", ok: true, message: "Replication connection established")
    }
}

/// What became of a subscription in the change feed.
package enum ChangeSubscriptionOutcome: Sendable {
    /// Every commit from now on is delivered.
    case live
    /// What can be served of it is live. The complaints are about the rest.
    case partly([SubscriptionComplaint])
    /// It cannot be served as it is; the sentence says why and what to do. The feed tries again by itself.
    case failed(String)
    /// The database is away, and what has to be known of its tables is not known yet.
    case unavailable
}

/// Why one of a group's bindings is not served, or not wholly.
package struct SubscriptionComplaint: Sendable, Equatable {
    /// One sentence for people, with what to do.
    package let message: String
    /// Changes that the client asked for do not come; else they might not, if somebody wrote in an unusual way.
    package let isError: Bool

    package init(_ message: String, isError: Bool) {
        self.message = message
        self.isError = isError
    }
}
