import Wire

/// Sending of the app's messages, requests of its sequences, and deadlines.
extension ChannelMachine {
    /// Sends a broadcast. While the channel is reconnecting, the message waits for at most `timing.send`.
    package mutating func sendBroadcast(_ call: CallID, _ body: ClientMessage.Body, _ refs: inout Refs, _ at: Instant) {
        switch phase {
        case .joined: pushBroadcast(call, body, deadline: at.now + timing.send, &refs)
        case .idle:
            actions.append(.answer(call, .notConnected("The channel is not subscribed: call subscribe() first.")))
        case .leaving, .over: actions.append(.answer(call, .left))
        case .offline, .joining, .waiting:
            guard pending.addHeld(PendingCalls.Held(call: call, body: body, deadline: at.now + timing.send)) else {
                return actions.append(.answer(call, .bufferFull(limit: Self.heldLimit)))
            }
        }
    }

    private mutating func pushBroadcast(
        _ call: CallID, _ body: ClientMessage.Body, deadline: Moment, _ refs: inout Refs
    ) {
        let ref = refs.next()
        actions.append(
            .send(ClientMessage(joinRef: joinRef, ref: ref, topic: topic, event: "broadcast", body: body)))
        if configuration.acknowledgesBroadcasts {
            pending.addRequest(PendingCalls.Request(call: call, purpose: "the message", deadline: deadline), ref: ref)
        } else {
            actions.append(.answer(call, nil))
        }
    }

    /// Sends the messages that have waited for the channel, in the order of the calls.
    package mutating func releaseHeld(_ refs: inout Refs, _ at: Instant) {
        for message in pending.takeHeld() {
            pushBroadcast(message.call, message.body, deadline: message.deadline, &refs)
        }
    }

    // MARK: Presence

    /// Stores the payload to be present with, which each join sends again. A joined channel sends it at once; otherwise
    /// the call is answered once the payload is stored.
    package mutating func trackPresence(_ call: CallID, _ payload: [UInt8], _ refs: inout Refs, _ at: Instant) {
        switch phase {
        case .leaving, .over: return actions.append(.answer(call, .left))
        default: break
        }
        tracked = payload
        if isJoined { return sendTrack(payload, call, &refs, at) }
        actions.append(.answer(call, nil))
    }

    package mutating func sendTrack(_ payload: [UInt8], _ call: CallID?, _ refs: inout Refs, _ at: Instant) {
        let ref = refs.next()
        let body =
            Array("{\"type\":\"presence\",\"event\":\"track\",\"payload\":".utf8) + payload + [UInt8(ascii: "}")]
        actions.append(.send(channelMessage("presence", ref: ref, body)))
        pending.addRequest(PendingCalls.Request(call: call, purpose: "track", deadline: at.now + timing.send), ref: ref)
    }

    /// Ends this client's presence in the channel.
    package mutating func untrackPresence(_ refs: inout Refs) {
        guard tracked != nil else { return }
        tracked = nil
        guard isJoined else { return }
        actions.append(
            .send(
                channelMessage(
                    "presence", ref: refs.next(), Array("{\"type\":\"presence\",\"event\":\"untrack\"}".utf8))))
    }

    // MARK: Typing and app state

    /// Reports that the user types, or has stopped. Never waits for a channel: typing does not outlast a loss.
    ///
    /// - Parameter payload: the text of a JSON object that contains `typing`.
    package mutating func sendTyping(typing isTyping: Bool, _ payload: [UInt8], _ refs: inout Refs, _ at: Instant) {
        guard isJoined, throttle.shouldSend(isTyping, at: at.now) else { return }
        let ref = refs.next()
        actions.append(
            .send(
                ClientMessage(
                    joinRef: joinRef, ref: ref, topic: topic, event: "broadcast",
                    body: .broadcast(event: "typing", payload: payload, isJSON: true))))
    }

    /// Tells the hub the app's state, which applies to the whole socket.
    package mutating func sendAppState(_ appState: AppState, _ refs: inout Refs) {
        guard isJoined else { return }
        let payload = "{\"type\":\"app_state\",\"state\":\"\(appState.rawValue)\"}"
        actions.append(.send(channelMessage("app_state", ref: refs.next(), Array(payload.utf8))))
    }

    // MARK: Sequences

    /// Adds a sequence's request for row changes.
    package mutating func addSequence(_ subscription: SubscriptionID, _ request: ChangeRequest, _ at: Instant) {
        changes.addSequence(subscription, request)
        guard isJoined, !changes.routeSequence(subscription, request) else { return }
        let soon = at.now + timing.subscribeDelay
        joinAgainAt = min(joinAgainAt ?? soon, soon)
    }

    /// Removes a sequence that is not read any more.
    package mutating func removeSequence(_ subscription: SubscriptionID, _ at: Instant) {
        if changes.removeSequence(subscription), isJoined {
            joinAgainAt = joinAgainAt ?? at.now + timing.unsubscribeDelay
        }
    }

    /// Requests members for a sequence that reads presence.
    package mutating func showPresence(_ at: Instant) {
        guard !wantsPresence else { return }
        wantsPresence = true
        if isJoined { joinAgainAt = at.now + timing.subscribeDelay }
    }

    // MARK: Time

    /// Handles what is due: ends calls that have waited for too long, and joins.
    package mutating func handleDeadlines(_ context: Context, _ refs: inout Refs, _ at: Instant) {
        if presence.expireStale(at.now) { actions.append(.presence) }
        if typing.removeSilent(at.now) { actions.append(.typing) }
        actions += pending.endOverdue(at.now)
        switch phase {
        case .joining(_, let deadline) where deadline <= at.now:
            channelLost("The hub did not answer the join.", context.appState, at)
            joinLater("The hub did not answer the join.", at)
        case .waiting(let until) where until <= at.now: if context.isUp { sendJoin(context, &refs, at) }
        case .leaving(_, let deadline) where deadline <= at.now: isLeft()
        case .joined:
            if [joinAgainAt, readAgainAt].contains(where: { $0.map { $0 <= at.now } ?? false }) {
                sendJoin(context, &refs, at)
            }
            for id in producers.keys { producers[id]?.handleDeadlines(at.now) }
            sendWrites(&refs, at)
        default: break
        }
    }
}
