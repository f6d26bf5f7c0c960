import Matching
import Wire

/// Joining and leaving channels (wire-protocol A4, A9).
extension Hub {
    func joinChannel(_ frame: ClientFrame, on connection: Connection) {
        guard case .json(let payload) = frame.body else { return }
        guard frame.topic.utf8.starts(with: ChannelKey.prefix.utf8) else {
            return context.refuseFrame(frame, on: connection, .unmatchedTopic)
        }
        joinChannel(
            JoinRequest(
                topic: frame.topic, ref: frame.ref, joinRef: frame.joinRef.isNull ? frame.ref : frame.joinRef,
                config: JoinConfig(payload, topic: frame.topic, limits: context.limits)),
            on: connection)
    }

    func joinChannel(_ request: JoinRequest, on connection: Connection) {
        let (config, joinRef) = (request.config, request.joinRef)
        // A join on a joined topic replaces the old incarnation. Its phx_close is not sent: the Python client would
        // attribute it to the new one and drop the channel.
        if let old = connection.memberships[request.topic] {
            refuseHeld(of: old, .unmatchedTopic)
            presence.replaceMember(old, by: config, &context)
            removeMember(old, .replaced)
        }

        let claims: Claims
        let bindings: [ChangeBinding]
        let subscription: ChangeSubscription
        do {
            // A reader of events asks for all of its channels at once, and only once.
            if connection.reader == nil { try context.countJoin(on: connection) }
            claims = try checkJoin(request, on: connection)
            // Copied, because a group outlives the frame that its bindings came in.
            bindings = config.changes.map {
                ChangeBinding(JSON(trusted: Array($0.bytes)[...]), expressions: context.limits.regularExpressions)
            }
            subscription = ChangeSubscription(
                role: claims.role, bindings: bindings, ids: ChangeBinding.ids(for: bindings), isLegacy: config.isLegacy)
            try countPatterns(subscription, of: connection)
            // Readers of events were already counted at the door.
            if connection.reader == nil { try users.countSocket(connection, as: claims, context.limits) }
        } catch {
            counters.joinsRefused += 1
            context.reportFailure(JoinFailure(error), on: connection.slot)
            return refuseRequest(request, on: connection, error)
        }

        let ids = subscription.ids
        let channel = ensureChannel(ChannelKey(topic: request.topic, isPrivate: config.isPrivate))
        streams.prepareChannel(channel)
        let group = bindings.isEmpty ? nil : rows.registerGroup(of: channel, subscription, &context)
        let membership = Membership(
            config, of: connection, in: channel, joinRef: joinRef.description, claims: claims,
            member: context.nextMember(), presenceKey: randomUUID(),
            pending: PendingJoin(
                config, ref: JSON(trusted: Array(request.ref.bytes)[...]), response: Self.joinResponse(bindings, ids),
                at: context.now.monotonic))
        if let request = config.history {
            let trace = catchUp.trace(of: claims, joinRef: joinRef, connection, rows.progress, &context)
            membership.history = history.addMember(membership, request, trace, &context)
        }
        if let group {
            rows.enterGroup(group, membership, &context)
            membership.recovery = catchUp.openSession(
                config, joinRef: joinRef, claims: claims, in: group, on: connection, rows.progress, &context)
            membership.recovery?.broughtCursor = config.resumeCursor != nil
            membership.recovery?.rows = FirstRows(config, in: channel.key, context.limits)
        }
        context.addMember(membership)
        if let state = config.appState { presence.setAppState(state, of: connection, &context) }
        users.comeOnline(connection, as: claims, on: context.loop, at: context.now)
        noteAppState(of: connection)
        if connection.reader == nil { presence.expectOwner(membership, &context) }
        connection.wasEmptyAtSweep = false
        earliestExpiry = min(earliestExpiry, Int64(claims.expiresAt))
        startJoin(membership)
    }

    private func refuseRequest(_ request: JoinRequest, on connection: Connection, _ refusal: Refusal) {
        guard connection.reader == nil else {
            let key = ChannelKey(topic: request.topic, isPrivate: request.config.isPrivate)
            return recordVerdict(EventReader.Verdict(refusal: refusal), on: key, of: connection)
        }
        context.countRefusal(refusal)
        let frames = ServerFrame(connection.version, topic: JSONString.encode(request.topic))
        let reply = frames.reply(
            joinRef: request.joinRef, ref: request.ref, ok: false, response: refusal.response)
        actions.append(.send(reply, to: connection.slot))
    }

    /// Obtains everything that the join's answer waits for (`JoinMachine`).
    private func startJoin(_ membership: Membership) {
        var needs = needsOfRowChanges(membership)
        if membership.history?.doubts != nil { needs.insert(.history) }
        if !needs.isDisjoint(with: [.session, .history]) { catchUp.awaitArrival(of: membership, &context) }
        if membership.grants != nil {
            authorization.askToRead(membership, &context)
            needs.insert(.authorization)
        }
        handleEvent(.begins(needs), of: membership)
        awaitAnswer(of: membership)
    }

    /// Returns what must be known before row changes can reach a member that entered its group.
    func needsOfRowChanges(_ membership: Membership) -> JoinMachine.Needs {
        var needs = rows.needs(of: membership)
        if membership.recovery?.arrival != nil { needs.insert(.session) }
        return needs
    }

    private func countPatterns(_ subscription: ChangeSubscription, of connection: Connection) throws(Refusal) {
        let most = context.limits.patternsPerConnection
        guard subscription.patterns > 0 else { return }
        let before = connection.memberships.reduce(0) { $0 + ($1.group?.subscription.patterns ?? 0) }
        guard subscription.patterns + before <= most else { throw .over(.patternsPerConnection, most) }
    }

    /// Performs the checks before a join, in the original's order.
    private func checkJoin(_ request: JoinRequest, on connection: Connection) throws(Refusal) -> Claims {
        let (config, limits) = (request.config, context.limits)
        guard !request.topic.hasSameBytes(as: ChannelKey.prefix) else { throw .topicNameRequired }
        if limits.privateOnly, !config.isPrivate { throw .privateOnly }
        guard connection.memberships.count < limits.channelsPerConnection else {
            throw .over(.channelsPerConnection, limits.channelsPerConnection)
        }
        guard !config.hasTooManyChanges else {
            throw .over(.filtersPerChannel, limits.filtersPerChannel)
        }
        if let refusal = streams.refusal(of: config, topic: request.topic) { throw refusal }
        let claims =
            try config.token.map { token throws(Refusal) in try verifier.verifyToken(token, at: context.now) }
            ?? connection.claims
        if let expired = claims.expiryRefusal(at: context.now) { throw expired }
        if let bar = barRefusal(of: claims, from: ChannelKey(topic: request.topic, isPrivate: config.isPrivate)) {
            throw bar
        }
        if let replay = config.replay {
            guard config.isPrivate else { throw .replayNotAllowed }
            guard ReplayRequest(replay) != nil else { throw .replayInvalid }
        }
        return claims
    }

    /// Clients compare the entries one by one with their request: same order, same text, an `id` added.
    private static func joinResponse(_ bindings: [ChangeBinding], _ ids: [Int]) -> [UInt8] {
        var out = JSONWriter(reserving: bindings.reduce(32) { $0 + $1.raw.bytes.count + 20 })
        out.openObject()
        out.array("postgres_changes", zip(bindings, ids)) { $0.writeValue(json: $1.0.echoJSON(id: $1.1)) }
        out.closeObject()
        return out.bytes
    }

    func leaveChannel(_ frame: ClientFrame, on connection: Connection) {
        guard let membership = connection.memberships[frame.topic] else {
            return context.reply(to: frame, joinRef: frame.joinRef, on: connection, ok: true)
        }
        // A leave of an older incarnation must not end the one that replaced it (realtime-js leaves when a join times
        // out and may have rejoined by then).
        guard membership.isMeant(by: frame.joinRef) else {
            return context.reply(to: frame, joinRef: frame.joinRef, on: connection, ok: true)
        }
        refuseHeld(of: membership, .unmatchedTopic)
        removeMember(membership, .left)
        context.reply(to: frame.ref, of: membership, ok: true)
        let close = membership.frames.push(
            "phx_close", joinRef: membership.joinRef, ref: membership.joinRef, payload: Array("{}".utf8))
        actions.append(.send(close, to: membership.slot))
    }

    /// Removes a member from every list of the channel, and the channel from the hub if nothing is left in it.
    func removeMember(_ membership: Membership, _ end: MembershipEnd = .lost) {
        guard context.removeMember(membership) else { return }
        if membership.pending == nil { happenings?.channelLeft(membership.channel.key, at: context.now) }
        _ = membership.join.handleEvent(.removed)
        let channel = membership.channel
        authorization.discardPending(of: membership)
        stopHearing(membership)
        presence.stopShowing(to: membership, &context)
        if let subscription = membership.rows { rows.leaveGroup(subscription, membership, &context) }
        catchUp.endSession(membership, end, &context)
        history.removeMember(membership, end, &context)
        typing.endTyping(of: membership, &context)
        streams.removeMember(membership, &context)
        presence.removeMember(membership, end, &context)
        discardIfIdle(channel)
    }

    /// Removes a member from those that hear the channel's broadcasts.
    func stopHearing(_ membership: Membership) {
        let channel = membership.channel
        guard let index = membership.memberIndex else { return }
        if let moved = channel.members.remove(at: index, membership.version) {
            context.member(moved, of: channel)?.memberIndex = index
        }
        membership.memberIndex = nil
    }

    // MARK: Channels

    func ensureChannel(_ key: ChannelKey) -> LocalChannel {
        if let channel = channels[key] { return channel }
        let channel = LocalChannel(key: key)
        channels[key] = channel
        filter?.insert(channel.topicHash)
        return channel
    }

    func discardIfIdle(_ channel: LocalChannel) {
        if channel.isIdle, channels.removeValue(forKey: channel.key) != nil { filter?.remove(channel.topicHash) }
    }

    private func randomUUID() -> String {
        let (high, low) = (context.random.next() as UInt64, context.random.next() as UInt64)
        return UUIDText.formatUUID(UInt128(high) << 64 | UInt128(low), version: 4)
    }
}

/// A client's request to join a channel.
struct JoinRequest {
    /// With its prefix.
    let topic: String
    let ref: JSON
    let joinRef: JSON
    let config: JoinConfig
}
