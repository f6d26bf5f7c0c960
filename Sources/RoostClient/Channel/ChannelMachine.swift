import Wire

/// What a channel's logic wants done.
package enum ChannelAction {
    case send(ClientMessage)
    /// For these change sequences.
    case change(IncomingChange, [SubscriptionID])
    /// For all change sequences.
    case expired(reason: String)
    /// All change sequences end.
    case failChanges(RoostError)
    case broadcast(IncomingBroadcast)
    case presence
    case typing
    case occupancy(Occupancy)
    case event(ChannelEvent)
    /// A frame as it came; nil payload for raw bytes.
    case message(ServerMessage)
    /// The answer to a call.
    case answer(CallID, RoostError?)
    /// The hub says that the token is no good.
    case tokenRefused
    /// It is over: all sequences end, with the error or without one.
    case over(RoostError?)
}

package typealias SubscriptionID = Int
package typealias CallID = Int

/// The life of a channel: joining and coming back, what waits for an answer, what the hub sends.
///
/// Pure, like `ConnectionMachine`: inputs are methods, `actions` says what is to be done, and `tick` is to be called at
/// `nextDeadline`.
package struct ChannelMachine {
    package enum Phase: Equatable {
        /// Nobody subscribed yet.
        case idle
        /// Joins as soon as there is a socket.
        case offline
        case joining(ref: String, deadline: Moment)
        case joined(ref: String, since: Moment)
        /// The next join is at `until`.
        case waiting(until: Moment)
        case leaving(ref: String, deadline: Moment)
        case over
    }

    /// A message that waits for the channel.
    package struct Held {
        let call: CallID
        let body: ClientMessage.Body
        let deadline: Moment
    }

    /// A request that waits for its answer.
    package struct Request {
        let call: CallID?
        let purpose: String
        let deadline: Moment
    }

    /// What all channels of a client share, at this moment.
    package struct Context {
        var token: String?
        var appState: AppState
        var isUp: Bool
    }

    package struct Timing {
        package var join: Duration = .seconds(10)
        package var send: Duration = .seconds(10)
        package var leave: Duration = .seconds(3)
        package var grace = GraceWindows()
        package var backoff = Backoff.Policy()
        /// Sequences that are made one after the other are asked for in one join.
        package var subscribeDelay: Duration = .milliseconds(10)
        /// What nobody reads any more is given back with the next join, or after this time.
        package var unsubscribeDelay: Duration = .seconds(5)

        package init() {}
    }

    /// Messages that may wait for a channel to come back.
    package static let heldLimit = 256

    package let topic: String
    package let configuration: ChannelConfiguration
    package let presenceKey: String
    package let timing: Timing

    package var phase = Phase.idle
    package var actions: [ChannelAction] = []
    package var backoff: Backoff

    /// What sequences ask for, and what the last answered join got for it: the hub's ids and whose they are.
    package var wanted: [SubscriptionID: ChangeRequest] = [:]
    package var asked: [ChangeRequest] = []
    package var granted: [(binding: ChangeRequest, id: Int)] = []
    package var routes: [Int: [SubscriptionID]] = [:]
    /// Row changes were live before, so that a join which cannot resume leaves a gap.
    package var hasBeenLive = false
    package var joinAgainAt: Moment?
    package var wantsPresence: Bool
    package var presenceAsked = false

    package var cursor: String?
    package var historyID: String?
    package var presence = PresenceMap()
    package var typing = TypingMap()
    package var throttle = TypingThrottle()
    /// The payload to be present with.
    package var tracked: [UInt8]?

    package var subscribers: [CallID] = []
    package var leavers: [CallID] = []
    /// The join was answered and the hub has not said yet that row changes are live.
    package var awaitsChanges = false
    package var held: [Held] = []
    package var requests: [String: Request] = [:]

    package init(topic: String, _ configuration: ChannelConfiguration, presenceKey: String, _ timing: Timing) {
        self.topic = topic
        self.configuration = configuration
        self.presenceKey = configuration.presenceKey ?? presenceKey
        self.timing = timing
        backoff = Backoff(timing.backoff)
        cursor = configuration.resumeFrom
        wantsPresence = configuration.presence == .members
    }

    package mutating func takeActions() -> [ChannelAction] {
        defer { actions = [] }
        return actions
    }

    package var joinRef: String? {
        switch phase {
        case .joining(let ref, _), .joined(let ref, _): ref
        default: nil
        }
    }

    package var isJoined: Bool { if case .joined = phase { true } else { false } }

    /// When `tick` has something to do.
    package var nextDeadline: Moment? {
        var deadlines = [presence.nextDeadline, typing.nextDeadline]
        switch phase {
        case .joining(_, let deadline), .waiting(let deadline), .leaving(_, let deadline): deadlines.append(deadline)
        case .joined: deadlines.append(joinAgainAt)
        case .idle, .offline, .over: break
        }
        deadlines += held.map(\.deadline)
        deadlines += requests.values.map(\.deadline)
        return deadlines.compactMap(\.self).min()
    }

    // MARK: Subscribing and leaving

    /// - Parameter call: answered when the channel is joined and its row changes are live.
    package mutating func subscribe(_ call: CallID?, _ context: Context, _ refs: inout Refs, _ at: Instant) {
        switch phase {
        case .over: if let call { actions.append(.answer(call, .left)) }
        case .leaving: if let call { actions.append(.answer(call, .left)) }
        case .joined where !awaitsChanges && joinAgainAt == nil: if let call { actions.append(.answer(call, nil)) }
        case .idle:
            if let call { subscribers.append(call) }
            phase = .offline
            if context.isUp { join(context, &refs, at) }
        default: if let call { subscribers.append(call) }
        }
    }

    package mutating func leave(_ call: CallID?, _ refs: inout Refs, _ at: Instant) {
        switch phase {
        case .joining, .joined:
            let ref = refs.next()
            actions.append(.send(message("phx_leave", ref: ref, Array("{}".utf8))))
            phase = .leaving(ref: ref, deadline: at.now + timing.leave)
            if let call { leavers.append(call) }
            finish(nil, .left)
        case .leaving: if let call { leavers.append(call) }
        case .over: if let call { actions.append(.answer(call, nil)) }
        case .idle, .offline, .waiting:
            phase = .over
            finish(nil, .left)
            if let call { actions.append(.answer(call, nil)) }
        }
    }

    /// The calling task of a call was cancelled; what it asked for may happen all the same.
    package mutating func cancel(_ call: CallID) {
        let waits =
            subscribers.contains(call) || held.contains { $0.call == call }
            || requests.values.contains { $0.call == call }
        subscribers.removeAll { $0 == call }
        held.removeAll { $0.call == call }
        for (ref, request) in requests where request.call == call {
            requests[ref] = Request(call: nil, purpose: request.purpose, deadline: request.deadline)
        }
        if waits { actions.append(.answer(call, .cancelled)) }
    }

    // MARK: The socket

    package mutating func socketIsUp(_ context: Context, _ refs: inout Refs, _ at: Instant) {
        guard phase == .offline else { return }
        join(context, &refs, at)
    }

    package mutating func socketIsDown(_ reason: String, _ appState: AppState, _ at: Instant) {
        switch phase {
        case .idle, .over, .offline: return
        case .leaving: return isLeft()
        case .joining, .joined, .waiting: break
        }
        lost(reason, appState, at)
        phase = .offline
    }

    /// A new token: channels that are in say it, channels that wait for one wait no more.
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

    /// What was established is lost, for now.
    package mutating func lost(_ reason: String, _ appState: AppState, _ at: Instant) {
        if case .joined(_, let since) = phase { backoff.ended(after: at.now - since) }
        let wasIn = isJoined
        presence.lost(at: at.now, window: timing.grace[appState])
        if typing.clear() { actions.append(.typing) }
        throttle.reset()
        for request in requests.values {
            guard let call = request.call else { continue }
            actions.append(
                .answer(
                    call,
                    .notConnected("The connection was lost before the hub answered; it may have happened.")))
        }
        requests = [:]
        routes = [:]
        granted = []
        joinAgainAt = nil
        awaitsChanges = false
        if wasIn { actions.append(.event(.lost(reason: reason))) }
    }

    package mutating func join(_ context: Context, _ refs: inout Refs, _ at: Instant) {
        guard let token = context.token else { return }
        let ref = refs.next()
        asked = []
        for (_, binding) in wanted.sorted(by: { $0.key < $1.key }) where !asked.contains(binding) {
            asked.append(binding)
        }
        presenceAsked = wantsPresence
        joinAgainAt = nil
        let payload = JoinPayload(
            configuration: configuration, presenceKey: presenceKey, wantsPresence: wantsPresence,
            appState: context.appState, bindings: asked, cursor: cursor, historyID: historyID,
            token: token)
        phase = .joining(ref: ref, deadline: at.now + timing.join)
        actions.append(
            .send(
                ClientMessage(
                    joinRef: ref, ref: ref, topic: topic, event: "phx_join", body: .json(payload.json))))
    }

    package mutating func joinLater(_ reason: String, _ at: Instant) {
        let wait = backoff.next(at.random)
        phase = .waiting(until: at.now + wait)
        actions.append(.event(.rejoining(in: wait, reason: reason)))
    }

    // MARK: The end

    /// The channel is over for its sequences and callers.
    package mutating func finish(_ error: RoostError?, _ event: ChannelEvent) {
        let waiting = subscribers + held.map(\.call)
        subscribers = []
        held = []
        for call in waiting { actions.append(.answer(call, error ?? .left)) }
        actions.append(.event(event))
        actions.append(.over(error))
    }

    package mutating func fail(_ error: RoostError) {
        phase = .over
        answerAll(error)
        finish(error, .failed(error))
    }

    /// The hub has let go, or nobody is there to do so.
    package mutating func isLeft() {
        phase = .over
        answerAll(.left)
        for call in leavers { actions.append(.answer(call, nil)) }
        leavers = []
    }

    package mutating func answerAll(_ error: RoostError) {
        for request in requests.values {
            if let call = request.call { actions.append(.answer(call, error)) }
        }
        requests = [:]
    }

    package func message(_ event: String, ref: String?, _ payload: [UInt8]) -> ClientMessage {
        ClientMessage(joinRef: joinRef, ref: ref, topic: topic, event: event, body: .json(payload))
    }
}
