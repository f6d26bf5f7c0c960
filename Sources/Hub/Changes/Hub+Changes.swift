import Wire

/// What the feed brings: answers about subscriptions, changes, messages, and what was missed (wire-protocol A4, A5).
extension Hub {
    package var groupCount: Int { rows.groups.count }

    // MARK: Subscriptions

    /// Takes a member's subscription over to other claims, when its token changed. A new "Subscribed to PostgreSQL"
    /// follows, as in the original.
    func resubscribe(_ membership: Membership, as claims: Claims) {
        guard let left = rows.change(membership, to: claims, &context) else { return }
        catchUp.startAnew(membership, wasHearing: left.groupIndex != nil, rows.progress, &context)
        handle(.rowChangesRestarted(needsOfRowChanges(membership)), of: membership)
    }

    /// What has to be known before row changes can reach a member that entered its group.
    func needsOfRowChanges(_ membership: Membership) -> JoinMachine.Needs {
        var needs = rows.needs(of: membership)
        if membership.recovery?.arrival != nil { needs.insert(.session) }
        return needs
    }

    /// The feed's word on a subscription: at first, and whenever it changes (a table is watched, dropped, altered).
    package func changeSubscription(_ id: ChangeGroupID, is outcome: ChangeSubscriptionOutcome) {
        guard let group = rows.groups[id] else { return }
        switch group.take(outcome, at: rows.progress.mark) {
        case .nothing: break
        case .state:
            for one in rows.subscribers(of: group, &context) { catchUp.sendState(of: group, to: one, &context) }
        case .complaints:
            for one in rows.subscribers(of: group, &context) { catchUp.sendComplaints(of: group, to: one, &context) }
        case .unavailable:
            // Without a database nothing can be promised: clients are told to come again.
            for membership in group.waiting where membership.isIn(group) {
                handle(.failed(.subscription, .databaseUnavailable), of: membership)
            }
            return
        }
        let waiting = group.waiting
        group.waiting = []
        for membership in waiting where membership.isIn(group) { handle(.met(.subscription), of: membership) }
        guard group.state == .live else { return }
        let outstanding = group.outstanding
        group.outstanding = []
        for membership in outstanding where membership.isIn(group) {
            catchUp.askForMissed(by: membership, rows.progress, &context)
        }
    }

    // MARK: What comes

    /// What the feed read, in the order it was committed.
    package func deliver(_ event: FeedEvent) {
        switch event {
        case .change(let change): deliver(change)
        case .broadcast(let message): deliver(message)
        case .recovery(let id, let step): recovery(id, step)
        case .boundary(let mark): rows.progress.reach(mark)
        case .withheld: rows.progress.leaveGap()
        case .gap: changesAreGone()
        }
    }

    /// Nobody knows whom they concerned: whoever hears row changes has to join again, and is told then what it lacks
    /// (`RecoveryRefusal.tooOld`). Who waits for its join to be answered is told nothing yet.
    private func changesAreGone() {
        rows.progress.leaveGap()
        for connection in connections.lazy.compactMap({ $0 }) {
            for membership in connection.memberships.reversed()
            where membership.rows != nil && membership.join.isJoined {
                expel(membership, .changesLost)
            }
        }
    }

    /// One change for a group of subscribers: one frame for each protocol version, whatever their number.
    private func deliver(_ change: ChangeDelivery) {
        rows.progress.pass(change)
        guard let group = rows.groups[change.group] else { return }
        let audience = group.audience(of: change)
        if change.operation == .insert {
            typing.end(ofAuthorOf: JSON(trusted: change.data[...]), in: group.channel, &context)
        }
        guard !audience.isEmpty else { return }
        let (event, payload) = change.event(isLegacy: group.subscription.isLegacy)
        context.fanOut(event, payload, in: group.channel, to: audience, kind: .change)
    }

    /// A message that SQL sent. Every loop hears it from the feed, so it is not relayed.
    private func deliver(_ message: DatabaseBroadcast) {
        history.keep(message, &context)
        guard let channel = channels[message.key] else { return }
        typing.end(ofAuthorOf: message.insert, in: channel, &context)
        authorization.keepForReplays(message, in: channel, withHistory: false, limits)
        let audience = channel.replays.receivers(of: message.id).map { channel.members.without($0) } ?? channel.members
        context.deliver(message.broadcast, in: channel, to: audience, except: nil)
        passOnNews(in: channel)
    }

    // MARK: What was missed

    /// Whose recovery it is; nil where the member left or asked anew.
    package func slot(of id: RecoveryID) -> Slot? { catchUp.member(id)?.slot }

    /// The feed's next step of a recovery. One for a member that left, or asked anew, changes nothing.
    package func recovery(_ id: RecoveryID, _ step: RecoveryStep) {
        guard let (membership, outcome) = catchUp.take(step, of: id, rows, &context) else { return }
        switch outcome {
        case .isKnown: recoveryIsKnown(of: membership)
        case .failed(let refusal): handle(.recoveryFailed(refusal), of: membership)
        }
    }

    /// Goes on with joins for which nothing has to be waited for any more.
    func settleArrivals() {
        for membership in catchUp.takeArrivals() where membership.join.needs([.session, .history]) {
            let session = catchUp.advanceArrival(of: membership, rows.progress, &context)
            membership.history?.decide(at: latest, longest: CatchUp.longestDoubt)
            if let session { handle(session, of: membership) }
            if membership.history?.doubts == nil { handle(.met(.history), of: membership) }
            if membership.join.needs([.session, .history]) { catchUp.awaitArrival(of: membership, &context) }
        }
    }

    // MARK: The feed's state

    package func feed(isReady: Bool) {
        catchUp.sessions.feed(isReady: isReady, at: latest)
        guard rows.feed(isReady: isReady) else { return }
        for connection in connections.lazy.compactMap({ $0 }) {
            for membership in connection.memberships where membership.awaitsReplication {
                rows.announceReplication(to: membership, &context)
            }
        }
    }
}
