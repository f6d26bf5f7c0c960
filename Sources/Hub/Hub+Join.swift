import Matching
import Wire

/// Joining and leaving channels (wire-protocol A4, A9).
extension Hub {
    func join(_ frame: ClientFrame, on connection: Connection, at now: HubTime) {
        guard case .json(let payload) = frame.body else { return }
        guard frame.topic.utf8.starts(with: ChannelKey.prefix.utf8) else {
            return refuse(frame, on: connection, .unmatchedTopic)
        }
        let joinRef = frame.joinRef.isNull ? frame.ref : frame.joinRef
        // A join on a joined topic replaces the old incarnation. Its phx_close is not sent: the Python client would take
        // it for the new one's and drop the channel.
        let config = JoinConfig(payload, topic: frame.topic, limits: limits)
        if let old = connection.memberships[frame.topic] {
            refuseHeld(of: old, .unmatchedTopic)
            giveUpPresence(of: old, unlessFor: config)
            remove(old, .replaced)
        }

        let claims: Claims
        let bindings: [ChangeBinding]
        let subscription: ChangeSubscription
        do {
            try countJoin(on: connection)
            claims = try admit(frame, config, on: connection, at: now)
            // Copied, because a group outlives the frame that its bindings came in.
            bindings = config.changes.map {
                ChangeBinding(JSON(trusted: Array($0.bytes)[...]), expressions: limits.regularExpressions)
            }
            subscription = ChangeSubscription(
                role: claims.role, bindings: bindings, ids: ChangeBinding.ids(for: bindings), isLegacy: config.isLegacy)
            try countPatterns(subscription, of: connection)
            try countUser(claims, of: connection)
        } catch {
            counters.joinsRefused += 1
            return refuse(frame, joinRef: joinRef, on: connection, error)
        }

        let ids = subscription.ids
        let channel = channel(ChannelKey(topic: frame.topic, isPrivate: config.isPrivate))
        let group = bindings.isEmpty ? nil : group(of: channel, subscription)
        let membership = Membership(
            config, of: connection, in: channel, joinRef: joinRef.description, claims: claims,
            member: MemberID(loop: loop, serial: nextSerial()), presenceKey: config.presenceKey ?? randomUUID(),
            pass: pass(config),
            pending: PendingJoin(
                ref: JSON(trusted: Array(frame.ref.bytes)[...]), response: Self.joinResponse(bindings, ids),
                wantsPresence: config.wantsPresence, wantsOccupancy: config.wantsOccupancy,
                wantsReplicationReady: config.wantsReplicationReady))
        membership.history = history(
            config, joinRef: joinRef, claims: claims, in: channel, on: connection, as: membership.member, at: now)
        if let group {
            enter(group, membership)
            membership.recovery = recovery(
                of: config, joinRef: joinRef, claims: claims, group: group, on: connection, at: now)
        }
        connection.memberships.append(membership)
        channel.memberCount += 1
        counters.memberships += 1
        if let state = config.appState { set(state, of: connection) }
        comeOnline(connection, as: claims)
        expectPresence(of: membership)
        connection.wasEmptyAtSweep = false
        earliestExpiry = min(earliestExpiry, Int64(claims.expiresAt))
        // "Live means live": the reply makes clients report SUBSCRIBED, so it waits until the feed has the bindings. In a
        // private channel the policies are asked meanwhile; whichever answers last completes the join.
        if let group, group.state == .registering { group.waiting.append(membership) }
        if membership.isArriving { awaitArrival(of: membership) }
        askToRead(membership)
        completeJoin(of: membership)
    }

    private func countPatterns(_ subscription: ChangeSubscription, of connection: Connection) throws(Refusal) {
        guard subscription.patterns > 0 else { return }
        let before = connection.memberships.reduce(0) { $0 + ($1.group?.subscription.patterns ?? 0) }
        guard subscription.patterns + before <= limits.patternsPerConnection else {
            throw .over(.patternsPerConnection, limits.patternsPerConnection)
        }
    }

    private func pass(_ config: JoinConfig) -> ChannelPass? {
        guard config.isPrivate else { return nil }
        return ChannelPass(
            wantsPresence: config.wantsPresence, replay: config.replay.flatMap { ReplayRequest($0) })
    }

    /// The checks before a join, in the original's order.
    private func admit(
        _ frame: ClientFrame, _ config: JoinConfig, on connection: Connection, at now: HubTime
    ) throws(Refusal) -> Claims {
        guard frame.topic != ChannelKey.prefix else { throw .topicNameRequired }
        if limits.privateOnly, !config.isPrivate { throw .privateOnly }
        guard connection.memberships.count < limits.channelsPerConnection else {
            throw .over(.channelsPerConnection, limits.channelsPerConnection)
        }
        guard !config.hasTooManyChanges else {
            throw .over(.filtersPerChannel, limits.filtersPerChannel)
        }
        let claims =
            try config.token.map { token throws(Refusal) in try verifier.verify(token, at: now) }
            ?? connection.claims
        if let expired = claims.expired(at: now) { throw expired }
        if let replay = config.replay {
            guard config.isPrivate else { throw .replayNotAllowed }
            guard ReplayRequest(replay) != nil else { throw .replayInvalid }
        }
        return claims
    }

    /// Clients compare the entries one by one with what they asked for: same order, same text, an `id` added.
    private static func joinResponse(_ bindings: [ChangeBinding], _ ids: [Int]) -> [UInt8] {
        var out = Array("{\"postgres_changes\":[".utf8)
        for (position, (binding, id)) in zip(bindings, ids).enumerated() {
            if position > 0 { out.append(UInt8(ascii: ",")) }
            out += binding.echo(id: id)
        }
        out += "]}".utf8
        return out
    }

    /// Answers a join and lets the member in, unless the feed or the policies still have to be heard.
    func completeJoin(of membership: Membership) {
        guard let pending = membership.pending, membership.group?.state != .registering,
            membership.pass == nil || membership.pass?.read != nil,
            !membership.isArriving
        else { return }
        askForMissed(by: membership)
        // The reply says whether it could be resumed, and clients take no changes before the reply.
        if let recovery = membership.recovery, recovery.question != nil, recovery.start == nil { return }
        guard membership.pass?.replay?.overflowed != true else {
            return refuseJoin(of: membership, .replayFailed)
        }
        let channel = membership.channel
        let missed = missedMessages(by: membership)
        let reply = membership.frames.reply(
            joinRef: membership.joinRef, ref: pending.ref, ok: true,
            response: Self.response(Self.response(pending.response, membership.recovery), membership, missed))
        actions.append(.send(reply, to: membership.slot))

        counters.joins += 1
        membership.pending = nil
        if let recovery = membership.recovery { joinIsAnswered(recovery) }
        if let pass = membership.pass { sendReplay(pass, to: membership) }
        if membership.mayRead(.broadcast) { takeMemberSeat(membership, after: missed) }
        takeSeatOrWait(membership)
        if pending.wantsReplicationReady { announceReplication(to: membership) }
        resumePresence(of: membership)
        if pending.wantsPresence, membership.mayRead(.presence) { showPresence(to: membership) }
        if pending.wantsOccupancy, membership.mayRead(.presence) { showOccupancy(to: membership) }
        if membership.mayRead(.broadcast) { showTyping(to: membership) }
        summaryJoins?.note(channel.key.topic, by: membership.claims.subject)
        releaseWrites(of: membership)
    }

    /// Answers a join with a no.
    func refuseJoin(of membership: Membership, _ refusal: Refusal) {
        guard let pending = membership.pending else { return }
        counters.joinsRefused += 1
        refuse(pending.ref, of: membership, refusal)
        refuseHeld(of: membership, refusal)
        remove(membership)
    }

    func leave(_ frame: ClientFrame, on connection: Connection) {
        guard let membership = connection.memberships[frame.topic] else {
            return reply(to: frame, joinRef: frame.joinRef, on: connection, ok: true)
        }
        // A leave of an older incarnation must not end the one that replaced it (realtime-js leaves when a join times
        // out and may have joined again by then).
        if !frame.joinRef.isNull, frame.joinRef.description != membership.joinRefText {
            return reply(to: frame, joinRef: frame.joinRef, on: connection, ok: true)
        }
        refuseHeld(of: membership, .unmatchedTopic)
        remove(membership, .left)
        reply(to: frame.ref, of: membership, ok: true)
        let close = membership.frames.push(
            "phx_close", joinRef: membership.joinRef, ref: membership.joinRef, payload: Array("{}".utf8))
        actions.append(.send(close, to: membership.slot))
    }

    /// Takes a member out of every list of the channel, and the channel out of the hub when nothing is left in it.
    func remove(_ membership: Membership, _ end: MembershipEnd = .lost) {
        guard membership.connection.memberships.remove(membership) else { return }
        membership.hasEnded = true
        let (channel, version) = (membership.channel, membership.version)
        channel.memberCount -= 1
        counters.memberships -= 1
        if let pass = membership.pass { discard(pass, of: membership) }
        if let seat = membership.memberSeat, let moved = channel.members.remove(at: seat, version) {
            reseat(moved, in: channel, \.memberSeat, seat)
        }
        if let seat = membership.watcherSeat, let moved = channel.watchers.remove(at: seat, version) {
            reseat(moved, in: channel, \.watcherSeat, seat)
        }
        if let seat = membership.counterSeat, let moved = channel.counters.remove(at: seat, version) {
            reseat(moved, in: channel, \.counterSeat, seat)
        }
        if let place = membership.place { leave(place, membership) }
        endSession(of: membership, end)
        endHistory(of: membership, isLeave: end == .left || end == .unloaded)
        endTyping(of: membership)
        releasePresence(of: membership, end)
        discardIfIdle(channel)
    }

    func reseat(
        _ slot: Slot, in channel: Channel, _ seat: ReferenceWritableKeyPath<Membership, Int32?>, _ position: Int32
    ) {
        connection(slot)?.memberships[channel]?[keyPath: seat] = position
    }

    // MARK: Channels

    func channel(_ key: ChannelKey) -> Channel {
        if let channel = channels[key] { return channel }
        let channel = Channel(key: key)
        channels[key] = channel
        return channel
    }

    func discardIfIdle(_ channel: Channel) {
        if channel.isIdle { channels[channel.key] = nil }
    }

    private func randomUUID() -> String {
        let (high, low) = (random.next() as UInt64, random.next() as UInt64)
        return UUIDText.write(UInt128(high) << 64 | UInt128(low), version: 4)
    }
}
