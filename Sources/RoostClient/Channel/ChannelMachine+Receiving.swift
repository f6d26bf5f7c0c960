import Wire

/// Handles frames of the hub.
extension ChannelMachine {
    package mutating func receiveFrame(_ message: ServerMessage, _ context: Context, _ refs: inout Refs, _ at: Instant)
    {
        guard phase != .over, phase != .idle else { return }
        switch message.event {
        case "phx_reply": receiveReply(message, context, &refs, at)
        case "phx_close": channelClosed(message)
        case "phx_error": channelErrored(message, context, at)
        case "system": receiveSystem(message, at)
        // Frames before the reply to a join belong to the previous join.
        case "postgres_changes": receiveChange(message)
        case "presence_state":
            guard isJoined, let payload = message.payload else { break }
            if presence.applyState(payload) { actions.append(.presence) }
        case "presence_diff":
            guard isJoined, let payload = message.payload else { break }
            if presence.applyDiff(payload) { actions.append(.presence) }
        case "presence_occupancy":
            guard let payload = message.payload, let members = payload["members"]?.int else { break }
            actions.append(.occupancy(Occupancy(members: members, keys: payload["keys"]?.int ?? members)))
        case "broadcast": receiveBroadcast(message, context, &refs, at)
        default: break
        }
        actions.append(.message(message))
    }

    // MARK: Answers

    private mutating func receiveReply(
        _ message: ServerMessage, _ context: Context, _ refs: inout Refs, _ at: Instant
    ) {
        guard let ref = message.ref, let payload = message.payload else { return }
        let isOK = payload["status"]?.string == "ok"
        let response = payload["response"] ?? .emptyObject
        let reason = response["reason"]?.string ?? response.description
        if case .joining(ref, _) = phase {
            if isOK { return joinSucceeded(ref, response, &refs, at) }
            return joinRefused(reason, context, at)
        }
        if case .leaving(ref, _) = phase {
            return isLeft()
        }
        guard !answersWrite(ref, isOK ? nil : reason, response, context, &refs, at) else { return }
        guard let request = pending.takeRequest(ref: ref) else { return }
        guard !isOK else {
            if let call = request.call { actions.append(.answer(call, nil)) }
            return
        }
        if reason == "unmatched topic", isJoined {
            // The hub no longer knows this channel.
            if let call = request.call { actions.append(.answer(call, .notConnected("The channel was lost."))) }
            channelLost(reason, context.appState, at)
            return joinLater(reason, at)
        }
        if let call = request.call { actions.append(.answer(call, RoostError(refusal: reason))) }
        if NextAction(reason: reason) == .refreshToken { actions.append(.tokenRefused) }
    }

    private mutating func joinSucceeded(_ ref: String, _ response: JSON, _ refs: inout Refs, _ at: Instant) {
        phase = .joined(ref: ref, since: at.now)
        let outcome = changes.joinSucceeded(response)
        if let reason = outcome.gap {
            actions.append(.expired(reason: reason))
            actions.append(.event(.reloadNeeded(reason: reason)))
        }
        actions.append(.event(.joined(resumed: outcome.isResumed)))
        if let history = response["history"] {
            historyID = history["id"]?.string ?? historyID
            if response["complete"]?.bool == false || history["complete"]?.bool == false {
                let reason = history["reason"]?.string ?? response["reason"]?.string ?? "The hub does not keep them."
                actions.append(.event(.historyIncomplete(reason: reason)))
            }
        }
        if !changes.awaitsLive { actions += pending.endSubscribers(nil) }
        if let tracked { sendTrack(tracked, nil, &refs, at) }
        releaseHeld(&refs, at)
        stream?.joinSucceeded()
        sendWrites(&refs, at)
        if outcome.lacksSome || presenceAsked != wantsPresence {
            joinAgainAt = at.now + timing.subscribeDelay
        } else if outcome.hasUnread {
            joinAgainAt = at.now + timing.unsubscribeDelay
        }
    }

    private mutating func joinRefused(_ reason: String, _ context: Context, _ at: Instant) {
        switch NextAction(reason: reason) {
        case .giveUp: return failChannel(.refused(reason: reason))
        case .refreshToken: actions.append(.tokenRefused)
        case .retry: break
        }
        channelLost(reason, context.appState, at)
        joinLater(reason, at)
    }

    // MARK: Unsolicited frames

    private mutating func channelClosed(_ message: ServerMessage) {
        guard let joinRef, message.joinRef == joinRef || message.joinRef == nil else { return }
        failChannel(.ended(reason: "The hub closed the channel."))
    }

    private mutating func channelErrored(_ message: ServerMessage, _ context: Context, _ at: Instant) {
        guard let joinRef, message.joinRef == joinRef || message.joinRef == nil else { return }
        let reason = message.payload?["reason"]?.string ?? "The hub ended the channel."
        if NextAction(reason: reason) == .refreshToken { actions.append(.tokenRefused) }
        channelLost(reason, context.appState, at)
        joinLater(reason, at)
    }

    private mutating func receiveSystem(_ message: ServerMessage, _ at: Instant) {
        guard message.joinRef == nil || message.joinRef == joinRef, let payload = message.payload else { return }
        let text = payload["message"]?.string ?? ""
        actions.append(.event(.notice(text)))
        if payload["extension"]?.string == "rows" { return takeRowsNews(payload, at) }
        guard payload["extension"]?.string == "postgres_changes" else { return }
        if text.hasPrefix("ChangesLost") {
            actions.append(.expired(reason: text))
            actions.append(.event(.reloadNeeded(reason: text)))
            readAllAgain(at)
        } else if payload["status"]?.string == "ok" {
            let cursor = payload["cursor"]?.string
            guard changes.changesWentLive(cursor: cursor) else { return }
            endReading(changes.lists.giveUp(), nil, at)
            if !changes.lists.isEmpty { actions.append(.listsAreLive(true, cursor: changes.cursor)) }
            actions += pending.endSubscribers(nil)
        } else {
            let error = RoostError.subscription(reason: text)
            actions += pending.endSubscribers(error)
            changes.failRequests()
            actions.append(.failChanges(error))
        }
    }

    private mutating func receiveChange(_ message: ServerMessage) {
        guard let payload = message.payload, let (ids, change) = IncomingChange.parse(payload) else { return }
        let subscriptions = changes.readers(of: change, ids: ids)
        if !subscriptions.isEmpty { actions.append(.change(change, subscriptions)) }
    }

    private mutating func receiveBroadcast(
        _ message: ServerMessage, _ context: Context, _ refs: inout Refs, _ at: Instant
    ) {
        guard let broadcast = IncomingBroadcast(message.body) else { return }
        historyID = broadcast.meta?.history ?? historyID
        if broadcast.isJSON, let payload = JSON(broadcast.payload) {
            switch broadcast.event {
            // A replayed `typing` says nothing about the present.
            case "typing" where broadcast.meta?.isReplayed != true:
                if typing.applyTyping(payload, at: at.now) { actions.append(.typing) }
            case "typing_state": if typing.applyState(payload, at: at.now) { actions.append(.typing) }
            case "stream": takeStream(payload, context, &refs, at)
            default: break
            }
        }
        actions.append(.broadcast(broadcast))
    }
}
