import Wire

/// Events of the feed, in commit order: changes, and messages sent by SQL (wire-protocol A5, B).
extension Hub {
    /// Handles one event of the feed, in commit order.
    package func deliverEvent(_ event: FeedEvent) {
        switch event {
        case .change(let change): deliverChange(change)
        case .broadcast(let message): deliverBroadcast(message)
        case .recovery(let id, let step): receiveRecovery(id, step)
        case .boundary(let mark): rows.progress.reachMark(mark)
        case .reached(let cursor): rows.progress.reachBoundary(cursor: cursor)
        case .withheld: rows.progress.leaveGap()
        case .complaint(let complaint, let group, let claims, let time):
            sendComplaint(complaint, claims, in: group, for: time)
        case .loss(let message, let group): tellOfLoss(message, in: group)
        case .gap: changesAreGone()
        case .broadcastGap(let patterns): broadcastsAreGone(patterns)
        case .messageWaits(let change, let waits): receipts.updateWaits(change, waits, &context)
        case .receipts(let questions): receipts.askQuestions(questions, at: catchUp.sessions.moment(), &context)
        }
    }

    private func sendComplaint(
        _ complaint: SubscriptionComplaint, _ claims: Claims, in id: ChangeGroupID, for milliseconds: Int64
    ) {
        guard let group = rows.groups[id], let principal = group.principals[claims] else { return }
        principal.recordComplaint(complaint, until: context.now.monotonic + milliseconds)
        for slot in principal.audience.slots {
            guard let membership = context.member(slot, of: group.channel) else { continue }
            context.sendComplaint(complaint, to: membership)
        }
    }

    private func tellOfLoss(_ message: String, in id: ChangeGroupID) {
        // Members whose join is not answered yet stand before this point and miss the changes.
        rows.progress.leaveGap()
        guard let group = rows.groups[id] else { return }
        for membership in rows.subscribers(of: group, &context) {
            context.sendSystemMessage(membership, extension: "postgres_changes", ok: true, message: message)
        }
    }

    /// Handles lost changes. Which subscribers they concerned is unknown, so every member that hears row changes has to
    /// rejoin, and is told then what it lacks (`RecoveryRefusal.tooOld`). Members whose join is not answered yet are
    /// told nothing for now.
    private func changesAreGone() {
        rows.progress.leaveGap()
        for connection in context.openConnections {
            for membership in connection.memberships.reversed()
            where membership.rows != nil && membership.join.isJoined {
                expelMember(membership, .changesLost)
            }
        }
    }

    /// Tells everyone in matching channels that messages may be lost, as nothing keeps them. A `system` message with an
    /// error would end the channel in the Python client.
    private func broadcastsAreGone(_ patterns: [ChannelPattern]) {
        for (key, channel) in channels where patterns.contains(where: { $0.matches(key) }) {
            for slot in channel.listeners.slots {
                guard let membership = context.member(slot, of: channel) else { continue }
                context.sendSystemMessage(
                    membership, extension: "broadcast", ok: true,
                    message: "Messages from the database may be missing: load what you show again.")
            }
        }
    }

    /// Delivers one change to a group of subscribers: one frame per protocol version, however many subscribers there
    /// are.
    private func deliverChange(_ change: ChangeDelivery) {
        rows.progress.passChange(change)
        guard let group = rows.groups[change.group] else { return }
        let audience = group.audience(of: change)
        if change.operation == .insert {
            typing.endTyping(ofAuthorOf: JSON(trusted: change.data[...]), in: group.channel, &context)
        }
        guard !audience.isEmpty else { return }
        receipts.recordChange(change, at: catchUp.sessions.moment(), context.now.monotonic)
        if rows.progress.cursor == change.cursor {
            audience.forEachReader { slot in
                guard let membership = context.member(slot, of: group.channel) else { return }
                membership.movePosition { $0.rows = change.cursor }
                membership.rows?.reached = rows.progress.serial
            }
        }
        let (event, payload) = change.event(isLegacy: group.subscription.isLegacy)
        context.fanOut(event, payload, in: group.channel, to: audience, kind: .change)
    }

    /// Delivers a message sent by SQL. Every loop gets it from the feed, so it is not relayed, except to be given a
    /// place in a history that several hubs keep.
    private func deliverBroadcast(_ message: DatabaseBroadcast) {
        if !isOrdered(message.key) {
            history.keepBroadcast(message, &context)
        } else if context.loop == 0 {
            let ordered = OrderedBroadcast(message.broadcast, databaseID: message.id)
            history.store.countSent(message.key)
            context.sendRelay(.ordered(message.key, ordered, isNumbered: false))
        }
        guard let channel = channels[message.key] else { return }
        let insert = message.insert
        typing.endTyping(ofAuthorOf: insert, in: channel, &context)
        if let insert, receipts.isNoting {
            receipts.recordInsert(insert, to: message.key, at: catchUp.sessions.moment(), context.now.monotonic)
        }
        authorization.keepForReplays(message, in: channel, withHistory: false, context.limits)
        let audience = channel.replays.receivers(of: message.id).map { channel.members.without($0) } ?? channel.members
        context.deliverBroadcast(message.broadcast, in: channel, to: audience, except: nil)
        passOnNews(in: channel)
    }

    /// Handles a change in whether the feed has a database to read from.
    package func feedChanged(isReady: Bool) {
        catchUp.sessions.feedChanged(isReady: isReady, at: context.now)
        guard rows.feedChanged(isReady: isReady) else { return }
        for connection in context.openConnections {
            for membership in connection.memberships where membership.awaitsReplication {
                rows.announceReplication(to: membership, &context)
            }
        }
        endWaitingReaders()
    }
}
