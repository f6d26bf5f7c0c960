import Wire

/// What the app sends through a channel, and what passes with time.
extension ChannelMachine {
    /// A broadcast. Where the channel is on its way back it waits for it, within its time.
    package mutating func send(_ call: CallID, _ body: ClientMessage.Body, _ refs: inout Refs, _ at: Instant) {
        switch phase {
        case .joined: push(call, body, deadline: at.now + timing.send, &refs)
        case .idle:
            actions.append(.answer(call, .notConnected("The channel is not subscribed: call subscribe() first.")))
        case .leaving, .over: actions.append(.answer(call, .left))
        case .offline, .joining, .waiting:
            guard held.count < Self.heldLimit else {
                return actions.append(.answer(call, .bufferFull(limit: Self.heldLimit)))
            }
            held.append(Held(call: call, body: body, deadline: at.now + timing.send))
        }
    }

    private mutating func push(
        _ call: CallID, _ body: ClientMessage.Body, deadline: Moment, _ refs: inout Refs
    ) {
        let ref = refs.next()
        actions.append(
            .send(ClientMessage(joinRef: joinRef, ref: ref, topic: topic, event: "broadcast", body: body)))
        if configuration.acknowledgesBroadcasts {
            requests[ref] = Request(call: call, purpose: "the message", deadline: deadline)
        } else {
            actions.append(.answer(call, nil))
        }
    }

    package mutating func releaseHeld(_ refs: inout Refs, _ at: Instant) {
        let waiting = held
        held = []
        for message in waiting { push(message.call, message.body, deadline: message.deadline, &refs) }
    }

    // MARK: Presence

    /// The payload is kept and told again after each join. Without a connection that is all that can be done.
    package mutating func track(_ call: CallID, _ payload: [UInt8], _ refs: inout Refs, _ at: Instant) {
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
        actions.append(.send(message("presence", ref: ref, body)))
        requests[ref] = Request(call: call, purpose: "track", deadline: at.now + timing.send)
    }

    package mutating func untrack(_ refs: inout Refs) {
        guard tracked != nil else { return }
        tracked = nil
        guard isJoined else { return }
        actions.append(
            .send(message("presence", ref: refs.next(), Array("{\"type\":\"presence\",\"event\":\"untrack\"}".utf8))))
    }

    // MARK: Typing and app state

    /// - Parameter payload: with `typing` in it. Never waits for a channel: who typed before a loss does not type now.
    package mutating func say(typing isTyping: Bool, _ payload: [UInt8], _ refs: inout Refs, _ at: Instant) {
        guard isJoined, throttle.says(isTyping, at: at.now) else { return }
        let ref = refs.next()
        actions.append(
            .send(
                ClientMessage(
                    joinRef: joinRef, ref: ref, topic: topic, event: "broadcast",
                    body: .broadcast(event: "typing", payload: payload, isJSON: true))))
    }

    package mutating func say(_ appState: AppState, _ refs: inout Refs) {
        guard isJoined else { return }
        let payload = "{\"type\":\"app_state\",\"state\":\"\(appState.rawValue)\"}"
        actions.append(.send(message("app_state", ref: refs.next(), Array(payload.utf8))))
    }

    // MARK: Sequences

    package mutating func add(_ subscription: SubscriptionID, _ binding: ChangeRequest, _ at: Instant) {
        wanted[subscription] = binding
        guard isJoined, !route(subscription, binding) else { return }
        let soon = at.now + timing.subscribeDelay
        joinAgainAt = min(joinAgainAt ?? soon, soon)
    }

    package mutating func remove(_ subscription: SubscriptionID, _ at: Instant) {
        guard let binding = wanted.removeValue(forKey: subscription) else { return }
        for id in routes.keys { routes[id]?.removeAll { $0 == subscription } }
        if isJoined, !wanted.values.contains(binding) { joinAgainAt = joinAgainAt ?? at.now + timing.unsubscribeDelay }
    }

    /// Lets a sequence have what the channel gets already. False where the channel has to join again for it.
    package mutating func route(_ subscription: SubscriptionID, _ binding: ChangeRequest) -> Bool {
        guard let id = granted.first(where: { $0.binding == binding })?.id else { return false }
        routes[id, default: []].append(subscription)
        return true
    }

    package mutating func showPresence(_ at: Instant) {
        guard !wantsPresence else { return }
        wantsPresence = true
        if isJoined { joinAgainAt = at.now + timing.subscribeDelay }
    }

    // MARK: Time

    package mutating func tick(_ context: Context, _ refs: inout Refs, _ at: Instant) {
        if presence.tick(at.now) { actions.append(.presence) }
        if typing.tick(at.now) { actions.append(.typing) }
        for message in held where message.deadline <= at.now {
            actions.append(.answer(message.call, .notConnected("There was no connection in time; it was not sent.")))
        }
        held.removeAll { $0.deadline <= at.now }
        for (ref, request) in requests where request.deadline <= at.now {
            requests[ref] = nil
            if let call = request.call { actions.append(.answer(call, .timedOut(request.purpose))) }
        }
        switch phase {
        case .joining(_, let deadline) where deadline <= at.now:
            lost("The hub did not answer the join.", context.appState, at)
            joinLater("The hub did not answer the join.", at)
        case .waiting(let until) where until <= at.now: if context.isUp { join(context, &refs, at) }
        case .leaving(_, let deadline) where deadline <= at.now: isLeft()
        case .joined:
            if let joinAgainAt, joinAgainAt <= at.now { join(context, &refs, at) }
        default: break
        }
    }
}
