import Wire

/// Joining and leaving channels (wire-protocol A4, A9).
extension Hub {
    func join(_ frame: ClientFrame, from slot: Slot, at now: HubTime) {
        guard connections[Int(slot)] != nil, case .json(let payload) = frame.body else { return }
        guard frame.topic.utf8.starts(with: ChannelKey.prefix.utf8) else {
            return refuse(frame, from: slot, joinRef: .null, .unmatchedTopic)
        }
        let joinRef = frame.joinRef.isNull ? frame.ref : frame.joinRef
        // A join on a joined topic replaces the old incarnation. Its phx_close is not sent: the Python client would take
        // it for the new one's and drop the channel.
        let config = JoinConfig(payload, topic: frame.topic, limits: limits)
        if let old = connections[Int(slot)]?.memberships.index(of: frame.topic) {
            refuseHeld(at: old, of: slot, .unmatchedTopic)
            if let membership = connections[Int(slot)]?.memberships[old] {
                giveUpPresence(of: membership, unlessFor: config)
            }
            removeMembership(at: old, of: slot, .replaced)
        }
        // Not the connection itself: its memberships would have to be copied when one is added.
        guard let joined = connections[Int(slot)]?.memberships.count, let bearer = connections[Int(slot)]?.claims
        else { return }

        let claims: Claims
        let bindings: [ChangeBinding]
        let subscription: ChangeSubscription
        do {
            try countJoin(of: slot)
            claims = try admit(frame, config, bearer: bearer, joined: joined, at: now)
            // Copied, because a group outlives the frame that its bindings came in.
            bindings = config.changes.map {
                ChangeBinding(JSON(trusted: Array($0.bytes)[...]), expressions: limits.regularExpressions)
            }
            subscription = ChangeSubscription(
                role: claims.role, bindings: bindings, ids: ChangeBinding.ids(for: bindings), isLegacy: config.isLegacy)
            try countPatterns(subscription, of: slot)
            try countUser(claims, of: slot)
        } catch {
            counters.joinsRefused += 1
            return refuse(frame, from: slot, joinRef: joinRef, error)
        }

        let ids = subscription.ids
        let channel = channel(ChannelKey(topic: frame.topic, isPrivate: config.isPrivate))
        let group = bindings.isEmpty ? nil : group(of: channel, subscription)
        let membership = Membership(
            config, in: channel, joinRef: joinRef.description, claims: claims,
            member: MemberID(loop: loop, serial: nextSerial()), presenceKey: config.presenceKey ?? randomUUID(),
            pass: pass(config),
            pending: PendingJoin(
                ref: JSON(trusted: Array(frame.ref.bytes)[...]), response: Self.joinResponse(bindings, ids),
                wantsPresence: config.wantsPresence, wantsOccupancy: config.wantsOccupancy,
                wantsReplicationReady: config.wantsReplicationReady))
        membership.history = history(
            config, joinRef: joinRef, claims: claims, in: channel, of: slot, as: membership.member, at: now)
        if let group {
            enter(group, membership)
            membership.recovery = recovery(
                of: config, joinRef: joinRef, claims: claims, group: group, slot: slot, at: now)
        }
        let index = connections[Int(slot)]?.memberships.count ?? 0
        connections[Int(slot)]?.memberships.append(membership)
        channel.memberCount += 1
        counters.memberships += 1
        if let state = config.appState { set(state, of: slot) }
        comeOnline(claims, slot)
        expectPresence(of: membership)
        connections[Int(slot)]?.wasEmptyAtSweep = false
        earliestExpiry = min(earliestExpiry, Int64(claims.expiresAt))
        // "Live means live": the reply makes clients report SUBSCRIBED, so it waits until the feed has the bindings. In a
        // private channel the policies are asked meanwhile; whichever answers last completes the join.
        if let group, group.state == .registering { group.waiting.append(slot) }
        if membership.isArriving { awaitArrival(of: membership.member, on: slot) }
        askToRead(at: index, of: slot)
        completeJoin(at: index, of: slot)
    }

    private func countPatterns(_ subscription: ChangeSubscription, of slot: Slot) throws(Refusal) {
        guard subscription.patterns > 0 else { return }
        let before = connections[Int(slot)]?.memberships.reduce(0) {
            $0 + ($1.group?.subscription.patterns ?? 0)
        }
        guard subscription.patterns + (before ?? 0) <= limits.patternsPerConnection else {
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
        _ frame: ClientFrame, _ config: JoinConfig, bearer: Claims, joined: Int, at now: HubTime
    ) throws(Refusal) -> Claims {
        guard frame.topic != ChannelKey.prefix else { throw .topicNameRequired }
        if limits.privateOnly, !config.isPrivate { throw .privateOnly }
        guard joined < limits.channelsPerConnection else {
            throw .over(.channelsPerConnection, limits.channelsPerConnection)
        }
        guard !config.hasTooManyChanges else {
            throw .over(.filtersPerChannel, limits.filtersPerChannel)
        }
        let claims =
            try config.token.map { token throws(Refusal) in try verifier.verify(token, at: now) }
            ?? bearer
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
    func completeJoin(at index: Int, of slot: Slot) {
        guard let version = connections[Int(slot)]?.version,
            let membership = connections[Int(slot)]?.memberships[index], let pending = membership.pending,
            membership.group?.state != .registering, membership.pass == nil || membership.pass?.read != nil,
            !membership.isArriving
        else { return }
        askForMissed(at: index, of: slot)
        // The reply says whether it could be resumed, and clients take no changes before the reply.
        if let recovery = membership.recovery, recovery.question != nil, recovery.start == nil { return }
        guard membership.pass?.replay?.overflowed != true else {
            return refuseJoin(at: index, of: slot, .replayFailed)
        }
        let channel = membership.channel
        let missed = missedMessages(at: index, of: slot)
        let reply = channel.frames(version).reply(
            joinRef: membership.joinRef, ref: pending.ref, ok: true,
            response: Self.response(Self.response(pending.response, membership.recovery), membership, missed))
        actions.append(.send(reply, to: slot))

        counters.joins += 1
        connections[Int(slot)]?.memberships[index].pending = nil
        if let recovery = membership.recovery { joinIsAnswered(recovery) }
        if let pass = membership.pass { sendReplay(pass, to: membership, slot, version) }
        if membership.mayRead(.broadcast) { takeMemberSeat(at: index, of: slot, after: missed) }
        takeSeatOrWait(at: index, of: slot)
        if pending.wantsReplicationReady { announceReplication(to: index, of: slot) }
        resumePresence(at: index, of: slot)
        if pending.wantsPresence, membership.mayRead(.presence) { showPresence(at: index, of: slot) }
        if pending.wantsOccupancy, membership.mayRead(.presence) { showOccupancy(at: index, of: slot) }
        if membership.mayRead(.broadcast) { showTyping(in: channel, to: slot, version) }
        summaryJoins?.note(channel.key.topic, by: membership.claims.subject)
        releaseWrites(at: index, of: slot)
    }

    /// Answers a join with a no.
    func refuseJoin(at index: Int, of slot: Slot, _ refusal: Refusal) {
        guard let membership = connections[Int(slot)]?.memberships[index], let pending = membership.pending else {
            return
        }
        counters.joinsRefused += 1
        refuse(pending.ref, of: membership, slot, refusal)
        refuseHeld(at: index, of: slot, refusal)
        removeMembership(at: index, of: slot)
    }

    func leave(_ frame: ClientFrame, from slot: Slot) {
        guard let index = connections[Int(slot)]?.memberships.index(of: frame.topic),
            let membership = connections[Int(slot)]?.memberships[index]
        else { return reply(to: frame, joinRef: frame.joinRef, from: slot, ok: true) }
        // A leave of an older incarnation must not end the one that replaced it (realtime-js leaves when a join times
        // out and may have joined again by then).
        if !frame.joinRef.isNull, frame.joinRef.description != membership.joinRefText {
            return reply(to: frame, joinRef: frame.joinRef, from: slot, ok: true)
        }
        refuseHeld(at: index, of: slot, .unmatchedTopic)
        removeMembership(at: index, of: slot, .left)
        reply(to: frame, joinRef: membership.joinRef, from: slot, ok: true)
        let close = frames(slot, topic: frame.topic).push(
            "phx_close", joinRef: membership.joinRef, ref: membership.joinRef, payload: Array("{}".utf8))
        actions.append(.send(close, to: slot))
    }

    /// Takes a member out of every list of the channel, and the channel out of the hub when nothing is left in it.
    ///
    func removeMembership(at index: Int, of slot: Slot, _ end: MembershipEnd = .lost) {
        guard let version = connections[Int(slot)]?.version, let appState = connections[Int(slot)].map(\.appState),
            let membership = connections[Int(slot)]?.memberships.remove(at: index)
        else { return }
        let channel = membership.channel
        channel.memberCount -= 1
        counters.memberships -= 1
        if let pass = membership.pass { discard(pass, of: slot, in: channel) }
        if let seat = membership.memberSeat, let moved = channel.members.remove(at: seat, version) {
            reseat(moved, in: channel, \.memberSeat, seat)
        }
        if let seat = membership.watcherSeat, let moved = channel.watchers.remove(at: seat, version) {
            reseat(moved, in: channel, \.watcherSeat, seat)
        }
        if let seat = membership.counterSeat, let moved = channel.counters.remove(at: seat, version) {
            reseat(moved, in: channel, \.counterSeat, seat)
        }
        if let place = membership.place { leave(place, in: channel, slot, version) }
        endSession(of: membership, end)
        endHistory(of: membership, slot, version, isLeave: end == .left || end == .unloaded)
        endTyping(of: membership)
        releasePresence(of: membership, end, appState)
        discardIfIdle(channel)
    }

    func reseat(
        _ slot: Slot, in channel: Channel, _ seat: ReferenceWritableKeyPath<Membership, Int32?>, _ position: Int32
    ) {
        guard let index = connections[Int(slot)]?.memberships.index(of: channel) else { return }
        connections[Int(slot)]?.memberships[index][keyPath: seat] = position
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
        // RFC 9562, section 5.4: version 4, variant 10.
        let a = high & 0xFFFF_FFFF_FFFF_0FFF | 0x4000
        let b = low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        func hex(_ value: UInt64, _ digits: Int) -> String {
            let text = String(value, radix: 16)
            return String(repeating: "0", count: digits - text.count) + text
        }
        return [
            hex(a >> 32, 8), hex(a >> 16 & 0xFFFF, 4), hex(a & 0xFFFF, 4), hex(b >> 48, 4),
            hex(b & 0xFFFF_FFFF_FFFF, 12),
        ]
        .joined(separator: "-")
    }
}
