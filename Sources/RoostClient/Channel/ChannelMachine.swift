import Wire

/// An action that `ChannelMachine` requests from `Engine` or, for the token and the socket, from `ClientMachine`.
package enum ChannelAction {
    case send(ClientMessage)
    /// Deliver a row change to these sequences.
    case change(IncomingChange, [SubscriptionID])
    /// The hub could not resume: all change sequences have to load their rows again.
    case expired(reason: String)
    /// The hub cannot serve row changes: all change sequences and lists end with this error.
    case failChanges(RoostError)
    /// The rows of these lists follow as changes; their previous content no longer counts.
    case rowsBegin([SubscriptionID], isResumed: Bool)
    /// The rows of these lists are complete, or could not be read; the changes since this cursor follow.
    case rowsEnd([SubscriptionID: RequestedLists.Answer], cursor: String?)
    /// Lists are current from this cursor on, or no longer.
    case listsAreLive(Bool, cursor: String?)
    /// This list cannot be shown.
    case failList(SubscriptionID, RoostError)
    case broadcast(IncomingBroadcast)
    /// Further content of the channel's stream, or its end.
    case stream(StreamNews)
    /// The hub has stored a writer's append; the stream has this many bytes now.
    case kept(WriterID, Int)
    /// A writer cannot write any more, for this reason.
    case writerFailed(WriterID, RoostError)
    /// The members have changed; they are in `presence`.
    case presence
    /// The typists have changed; they are in `typing`.
    case typing
    case occupancy(Occupancy)
    case event(ChannelEvent)
    /// A frame as it arrived, in addition to its other effects.
    case message(ServerMessage)
    /// The result of a call; nil is success.
    case answer(CallID, RoostError?)
    /// The hub does not accept the token.
    case tokenRefused
    /// The channel is over: all sequences end, with or without an error.
    case over(RoostError?)
}

/// Identifies a sequence that reads a channel.
package typealias SubscriptionID = Int
/// Identifies a call of the app whose task waits for the result.
package typealias CallID = Int

/// The logic of one channel: when it joins and rejoins, which calls wait for a reply, and the meaning of the hub's
/// frames.
///
/// Pure, like `ConnectionMachine`: it has no clock, no randomness and no I/O. Inputs are methods, `takeActions` returns
/// the actions, and `handleDeadlines` has to be called at `nextDeadline`. Refs number the requests of the whole client.
package struct ChannelMachine {
    package enum Phase: Equatable {
        /// Not subscribed yet.
        case idle
        /// Without a socket; the channel joins as soon as there is one.
        case offline
        /// The join was sent and has no reply yet; at the deadline it counts as lost.
        case joining(ref: String, deadline: Moment)
        case joined(ref: String, since: Moment)
        /// The hub refused or lost the channel for now; the next join is at `until`.
        case waiting(until: Moment)
        /// The leave was sent; at the deadline it counts as confirmed.
        case leaving(ref: String, deadline: Moment)
        /// Left, or ended for good; final.
        case over
    }

    /// The state shared by all channels of a client; `ClientMachine` passes it with each input.
    package struct Context {
        var token: String?
        var appState: AppState
        var isUp: Bool
    }

    /// The channel's time limits.
    package struct Timing {
        package var join: Duration = .seconds(10)
        package var send: Duration = .seconds(10)
        package var leave: Duration = .seconds(3)
        package var grace = GraceWindows()
        package var backoff = Backoff.Policy()
        /// The delay before a joined channel joins again for a new sequence, so that sequences created one after the
        /// other share one join.
        package var subscribeDelay: Duration = .milliseconds(10)
        /// The delay before a joined channel joins again without the requests that no sequence reads any more, unless
        /// another join comes first.
        package var unsubscribeDelay: Duration = .seconds(5)

        package init() {}
    }

    /// The most messages that may wait for a channel to come back.
    package static let heldLimit = 256

    package let topic: String
    package let configuration: ChannelConfiguration
    package let presenceKey: String
    package let timing: Timing

    package var phase = Phase.idle
    package var actions: [ChannelAction] = []
    package var backoff: Backoff

    package var changes: RequestedChanges
    /// The time to join again for changed requests of sequences.
    package var joinAgainAt: Moment?
    /// The time to join again for rows that lists lack.
    package var readAgainAt: Moment?
    package var wantsPresence: Bool
    /// True if the last join requested presence.
    package var presenceAsked = false

    /// The position in the history at which the next join resumes.
    package var historyID: String?
    package var presence = PresenceMap()
    package var typing = TypingMap()
    package var throttle = TypingThrottle()
    /// The payload that this client is present with, a JSON object; nil if it is not present.
    package var tracked: [UInt8]?

    package var pending = PendingCalls()

    /// Nil unless the channel is a stream's.
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

    /// The actions since the last call, in order.
    package mutating func takeActions() -> [ChannelAction] {
        defer { actions = [] }
        return actions
    }

    /// The ref of the current join; nil if there is none.
    package var joinRef: String? {
        switch phase {
        case .joining(let ref, _), .joined(let ref, _): ref
        default: nil
        }
    }

    package var isJoined: Bool { if case .joined = phase { true } else { false } }

    /// The next time at which `handleDeadlines` has work; nil if only another input can change anything.
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
    /// - Parameter call: answered once the channel is joined and its row changes are live.
    package mutating func subscribe(_ call: CallID?, _ context: Context, _ refs: inout Refs, _ at: Instant) {
        switch phase {
        case .over: if let call { actions.append(.answer(call, .left)) }
        case .leaving: if let call { actions.append(.answer(call, .left)) }
        case .joined where !changes.awaitsLive && joinAgainAt == nil: if let call { actions.append(.answer(call, nil)) }
        case .idle:
            if let call { pending.add(subscriber: call) }
            phase = .offline
            if context.isUp { sendJoin(context, &refs, at) }
        default: if let call { pending.add(subscriber: call) }
        }
    }

    /// Leaves for good. Without a join the hub need not be told, and the channel is over at once.
    package mutating func leaveChannel(_ call: CallID?, _ refs: inout Refs, _ at: Instant) {
        switch phase {
        case .joining, .joined:
            let ref = refs.next()
            actions.append(.send(channelMessage("phx_leave", ref: ref, Array("{}".utf8))))
            phase = .leaving(ref: ref, deadline: at.now + timing.leave)
            if let call { pending.add(leaver: call) }
            finishChannel(nil, .left)
        case .leaving: if let call { pending.add(leaver: call) }
        case .over: if let call { actions.append(.answer(call, nil)) }
        case .idle, .offline, .waiting:
            phase = .over
            finishChannel(nil, .left)
            if let call { actions.append(.answer(call, nil)) }
        }
    }

    /// Handles the cancellation of a task that waits for a call. The requested action may still happen.
    package mutating func cancelCall(_ call: CallID) {
        actions += pending.cancelCall(call)
        for id in producers.keys.sorted() { actions += producers[id]?.cancelCall(call) ?? [] }
    }

    // MARK: The socket

    /// A socket is open: a subscribed channel joins.
    package mutating func socketIsUp(_ context: Context, _ refs: inout Refs, _ at: Instant) {
        guard phase == .offline else { return }
        sendJoin(context, &refs, at)
    }

    /// The socket is gone, for this reason (one sentence).
    package mutating func socketIsDown(_ reason: String, _ appState: AppState, _ at: Instant) {
        switch phase {
        case .idle, .over, .offline: return
        case .leaving: return isLeft()
        case .joining, .joined, .waiting: break
        }
        channelLost(reason, appState, at)
        phase = .offline
    }

    /// A new token has arrived: a joined channel sends it to the hub, and one that waits to join does so at once.
    package mutating func tokenChanged(_ context: Context, _ refs: inout Refs, _ at: Instant) {
        switch phase {
        case .joined:
            guard let token = context.token else { return }
            let payload = Array("{\"access_token\":".utf8) + JSONString.encode(token) + [UInt8(ascii: "}")]
            actions.append(.send(channelMessage("access_token", ref: refs.next(), payload)))
        case .waiting: if context.isUp { sendJoin(context, &refs, at) }
        default: break
        }
    }

    /// The channel is lost for now: the hub's state for it is gone, and requests will get no reply.
    package mutating func channelLost(_ reason: String, _ appState: AppState, _ at: Instant) {
        if case .joined(_, let since) = phase { backoff.connectionEnded(after: at.now - since) }
        let wasIn = isJoined
        presence.channelLost(at: at.now, window: timing.grace[appState])
        if typing.clear() { actions.append(.typing) }
        throttle.reset()
        actions += pending.endRequests(
            .notConnected("The connection was lost before the hub answered; it may have happened."))
        changes.channelLost()
        loseWrites()
        (joinAgainAt, readAgainAt) = (nil, nil)
        if !changes.lists.isEmpty { actions.append(.listsAreLive(false, cursor: nil)) }
        if wasIn { actions.append(.event(.lost(reason: reason))) }
    }

    /// Sends a join for all current requests. Without a token nothing is sent; the next token triggers the join.
    package mutating func sendJoin(_ context: Context, _ refs: inout Refs, _ at: Instant) {
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

    /// Waits for the backoff before the next join.
    package mutating func joinLater(_ reason: String, _ at: Instant) {
        let wait = backoff.nextPause(at.random)
        phase = .waiting(until: at.now + wait)
        actions.append(.event(.rejoining(in: wait, reason: reason)))
    }

    // MARK: The end

    /// Ends the sequences and calls, with an error, or because the channel was left.
    package mutating func finishChannel(_ error: RoostError?, _ event: ChannelEvent) {
        actions += pending.endWaiting(error ?? .left)
        failWriters(error ?? .left)
        actions.append(.event(event))
        actions.append(.over(error))
    }

    /// Ends the channel for good with this error.
    package mutating func failChannel(_ error: RoostError) {
        phase = .over
        actions += pending.endRequests(error)
        finishChannel(error, .failed(error))
    }

    /// The hub has confirmed the leave, or is not there to do so.
    package mutating func isLeft() {
        phase = .over
        actions += pending.endRequests(.left) + pending.endLeavers()
    }

    /// Builds a frame of this channel under the current join.
    package func channelMessage(_ event: String, ref: String?, _ payload: [UInt8]) -> ClientMessage {
        ClientMessage(joinRef: joinRef, ref: ref, topic: topic, event: event, body: .json(payload))
    }
}
