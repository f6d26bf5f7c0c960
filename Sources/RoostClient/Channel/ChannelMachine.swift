import Wire

/// What `ChannelMachine` wants done, by `Engine` or, for the token and the socket, by `ClientMachine`.
package enum ChannelAction {
    case send(ClientMessage)
    /// A row change, for these change sequences.
    case change(IncomingChange, [SubscriptionID])
    /// The hub could not resume: all change sequences have to load their rows again.
    case expired(reason: String)
    /// The hub cannot serve row changes: all change sequences and lists end with this error.
    case failChanges(RoostError)
    /// The rows of these lists follow, as changes, and what they showed before does not count any more.
    case rowsBegin([SubscriptionID], isResumed: Bool)
    /// The rows of these lists are there, or could not be read; the changes since this cursor follow.
    case rowsEnd([SubscriptionID: RequestedLists.Answer], cursor: String?)
    /// Lists show what is so now, from this cursor on, or do so no longer.
    case listsAreLive(Bool, cursor: String?)
    /// This list cannot be shown.
    case failList(SubscriptionID, RoostError)
    case broadcast(IncomingBroadcast)
    /// What the channel's stream has more, or how it ended.
    case stream(StreamNews)
    /// The hub has kept what a writer appended: the stream has so many bytes now.
    case kept(WriterID, Int)
    /// A writer can write no more, for this reason.
    case writerFailed(WriterID, RoostError)
    /// Other members are in the channel than before; they are in `presence`.
    case presence
    /// Others type than before; they are in `typing`.
    case typing
    case occupancy(Occupancy)
    case event(ChannelEvent)
    /// A frame as it came, whatever else came of it.
    case message(ServerMessage)
    /// The answer to a call; nil is success.
    case answer(CallID, RoostError?)
    /// The hub does not accept the token.
    case tokenRefused
    /// The channel is over: all sequences end, with the error or without one.
    case over(RoostError?)
}

/// The number of one sequence that reads a channel.
package typealias SubscriptionID = Int
/// The number of one call of the app whose task waits for the answer.
package typealias CallID = Int

/// The logic of one channel: when it joins and comes back, what waits for an answer, what a frame of the hub means.
///
/// Pure, like `ConnectionMachine`: it has no clock, no randomness and no I/O. Inputs are methods, `takeActions` says what
/// is to be done, and `tick` has to be called at `nextDeadline`. Refs number the requests of the whole client.
package struct ChannelMachine {
    package enum Phase: Equatable {
        /// Nobody has subscribed yet.
        case idle
        /// There is no socket; the channel joins as soon as there is one.
        case offline
        /// The join was sent and not answered yet; at the deadline it counts as lost.
        case joining(ref: String, deadline: Moment)
        case joined(ref: String, since: Moment)
        /// The hub refused the channel for now or lost it; the next join is at `until`.
        case waiting(until: Moment)
        /// The leave was sent; at the deadline it counts as answered.
        case leaving(ref: String, deadline: Moment)
        /// It was left, or ended for good; nothing brings it back.
        case over
    }

    /// What all channels of a client share at this moment; `ClientMachine` hands it over with each input.
    package struct Context {
        var token: String?
        var appState: AppState
        var isUp: Bool
    }

    /// How long the channel waits for what.
    package struct Timing {
        package var join: Duration = .seconds(10)
        package var send: Duration = .seconds(10)
        package var leave: Duration = .seconds(3)
        package var grace = GraceWindows()
        package var backoff = Backoff.Policy()
        /// How long a joined channel waits before it joins again for a new sequence, so that sequences that are made one
        /// after the other are asked for in one join.
        package var subscribeDelay: Duration = .milliseconds(10)
        /// After how long a joined channel joins again without what no sequence reads any more, if no other join came
        /// first.
        package var unsubscribeDelay: Duration = .seconds(5)

        package init() {}
    }

    /// How many messages may wait for a channel to come back.
    package static let heldLimit = 256

    package let topic: String
    package let configuration: ChannelConfiguration
    package let presenceKey: String
    package let timing: Timing

    package var phase = Phase.idle
    package var actions: [ChannelAction] = []
    package var backoff: Backoff

    package var changes: RequestedChanges
    /// When to join again, for what sequences ask for or read no longer.
    package var joinAgainAt: Moment?
    /// When to join again for rows that lists lack.
    package var readAgainAt: Moment?
    package var wantsPresence: Bool
    /// The last join asked for presence.
    package var presenceAsked = false

    /// Behind which broadcast the next join resumes.
    package var historyID: String?
    package var presence = PresenceMap()
    package var typing = TypingMap()
    package var throttle = TypingThrottle()
    /// The payload that this client is present with, a JSON object; nil where it is not present.
    package var tracked: [UInt8]?

    package var pending = PendingCalls()

    /// Nil where the channel is none of a stream.
    package var stream: WatchedStream?
    package var producers: [WriterID: StreamProducer] = [:]

    package init(topic: String, _ configuration: ChannelConfiguration, presenceKey: String, _ timing: Timing) {
        self.topic = topic
        self.configuration = configuration
        self.presenceKey = configuration.presenceKey ?? presenceKey
        self.timing = timing
        backoff = Backoff(timing.backoff)
        changes = RequestedChanges(cursor: configuration.resumeFrom)
        wantsPresence = configuration.presence == .members
        stream = topic.hasPrefix(RoostStream.topicPrefix) ? WatchedStream() : nil
    }

    /// What is to be done since the last call, in this order.
    package mutating func takeActions() -> [ChannelAction] {
        defer { actions = [] }
        return actions
    }

    /// The ref of the join that the channel lives by; nil where the hub knows of none.
    package var joinRef: String? {
        switch phase {
        case .joining(let ref, _), .joined(let ref, _): ref
        default: nil
        }
    }

    package var isJoined: Bool { if case .joined = phase { true } else { false } }

    /// When `tick` has something to do; nil where only another input changes anything.
    package var nextDeadline: Moment? {
        var deadlines = [presence.nextDeadline, typing.nextDeadline, pending.nextDeadline]
        switch phase {
        case .joining(_, let deadline), .waiting(let deadline), .leaving(_, let deadline): deadlines.append(deadline)
        case .joined: deadlines += [joinAgainAt, readAgainAt] + producers.values.map(\.nextDeadline)
        case .idle, .offline, .over: break
        }
        return deadlines.compactMap(\.self).min()
    }

    // MARK: Subscribing and leaving

    /// Joins, unless the channel has joined or is about to.
    ///
    /// - Parameter call: is answered when the channel is joined and its row changes are live.
    package mutating func subscribe(_ call: CallID?, _ context: Context, _ refs: inout Refs, _ at: Instant) {
        switch phase {
        case .over: if let call { actions.append(.answer(call, .left)) }
        case .leaving: if let call { actions.append(.answer(call, .left)) }
        case .joined where !changes.awaitsLive && joinAgainAt == nil: if let call { actions.append(.answer(call, nil)) }
        case .idle:
            if let call { pending.add(subscriber: call) }
            phase = .offline
            if context.isUp { join(context, &refs, at) }
        default: if let call { pending.add(subscriber: call) }
        }
    }

    /// Leaves for good. Without a join there is nobody to tell, and the channel is over at once.
    package mutating func leave(_ call: CallID?, _ refs: inout Refs, _ at: Instant) {
        switch phase {
        case .joining, .joined:
            let ref = refs.next()
            actions.append(.send(message("phx_leave", ref: ref, Array("{}".utf8))))
            phase = .leaving(ref: ref, deadline: at.now + timing.leave)
            if let call { pending.add(leaver: call) }
            finish(nil, .left)
        case .leaving: if let call { pending.add(leaver: call) }
        case .over: if let call { actions.append(.answer(call, nil)) }
        case .idle, .offline, .waiting:
            phase = .over
            finish(nil, .left)
            if let call { actions.append(.answer(call, nil)) }
        }
    }

    /// The task that waits for a call was cancelled. What it asked for may happen all the same.
    package mutating func cancel(_ call: CallID) {
        actions += pending.cancel(call)
        for id in producers.keys.sorted() { actions += producers[id]?.cancel(call) ?? [] }
    }

    // MARK: The socket

    /// There is a socket: the channel joins, if somebody has subscribed.
    package mutating func socketIsUp(_ context: Context, _ refs: inout Refs, _ at: Instant) {
        guard phase == .offline else { return }
        join(context, &refs, at)
    }

    /// The socket is gone, for this reason (one sentence).
    package mutating func socketIsDown(_ reason: String, _ appState: AppState, _ at: Instant) {
        switch phase {
        case .idle, .over, .offline: return
        case .leaving: return isLeft()
        case .joining, .joined, .waiting: break
        }
        lost(reason, appState, at)
        phase = .offline
    }

    /// There is a new token: a joined channel tells the hub, and one that waits to join does so at once.
    package mutating func token(_ context: Context, _ refs: inout Refs, _ at: Instant) {
        switch phase {
        case .joined:
            guard let token = context.token else { return }
            let payload = Array("{\"access_token\":".utf8) + JSONString.encode(token) + [UInt8(ascii: "}")]
            actions.append(.send(message("access_token", ref: refs.next(), payload)))
        case .waiting: if context.isUp { join(context, &refs, at) }
        default: break
        }
    }

    /// The channel is lost for now: what the hub kept for it is gone, and requests will not be answered.
    package mutating func lost(_ reason: String, _ appState: AppState, _ at: Instant) {
        if case .joined(_, let since) = phase { backoff.ended(after: at.now - since) }
        let wasIn = isJoined
        presence.lost(at: at.now, window: timing.grace[appState])
        if typing.clear() { actions.append(.typing) }
        throttle.reset()
        actions += pending.endRequests(
            .notConnected("The connection was lost before the hub answered; it may have happened."))
        changes.lose()
        loseWrites()
        (joinAgainAt, readAgainAt) = (nil, nil)
        if !changes.lists.isEmpty { actions.append(.listsAreLive(false, cursor: nil)) }
        if wasIn { actions.append(.event(.lost(reason: reason))) }
    }

    /// Sends a join for all that is wanted now. Without a token nothing is sent; the next token joins.
    package mutating func join(_ context: Context, _ refs: inout Refs, _ at: Instant) {
        guard let token = context.token else { return }
        let ref = refs.next()
        presenceAsked = wantsPresence
        (joinAgainAt, readAgainAt) = (nil, nil)
        loseWrites()
        let payload = JoinPayload(
            configuration: configuration, presenceKey: presenceKey, wantsPresence: wantsPresence,
            appState: context.appState, requests: changes.beginJoin(), rows: changes.beginReading(),
            cursor: changes.cursor, historyID: historyID,
            stream: stream?.request(gathering: configuration.streamGathering), token: token)
        phase = .joining(ref: ref, deadline: at.now + timing.join)
        actions.append(
            .send(
                ClientMessage(
                    joinRef: ref, ref: ref, topic: topic, event: "phx_join", body: .json(payload.json))))
    }

    /// Waits for the time of the backoff before the next join.
    package mutating func joinLater(_ reason: String, _ at: Instant) {
        let wait = backoff.next(at.random)
        phase = .waiting(until: at.now + wait)
        actions.append(.event(.rejoining(in: wait, reason: reason)))
    }

    // MARK: The end

    /// The channel is over for its sequences and callers; with an error, or because it was left.
    package mutating func finish(_ error: RoostError?, _ event: ChannelEvent) {
        actions += pending.endWaiting(error ?? .left)
        failWriters(error ?? .left)
        actions.append(.event(event))
        actions.append(.over(error))
    }

    /// The channel ends for good with this error.
    package mutating func fail(_ error: RoostError) {
        phase = .over
        actions += pending.endRequests(error)
        finish(error, .failed(error))
    }

    /// The hub has answered the leave, or there is no hub to answer it.
    package mutating func isLeft() {
        phase = .over
        actions += pending.endRequests(.left) + pending.endLeavers()
    }

    /// A frame of this channel, under the join that it lives by.
    package func message(_ event: String, ref: String?, _ payload: [UInt8]) -> ClientMessage {
        ClientMessage(joinRef: joinRef, ref: ref, topic: topic, event: event, body: .json(payload))
    }
}
