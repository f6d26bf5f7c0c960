/// All of the client's logic: the connection, and the channels on it.
///
/// Pure: it has no clock, no randomness and no I/O. Inputs are methods, `takeActions` says what is to be done, and `tick`
/// has to be called at `nextDeadline`.
package struct ClientMachine {
    package private(set) var connection: ConnectionMachine
    package private(set) var channels: [ChannelID: ChannelMachine] = [:]
    private var refs = Refs()
    private var context: ChannelMachine.Context
    private let presenceKey: String
    private let channelTiming: ChannelMachine.Timing
    private var actions: [ClientAction] = []

    package init(
        _ timing: ConnectionMachine.Timing, _ channelTiming: ChannelMachine.Timing, presenceKey: String,
        _ appState: AppState = .active
    ) {
        connection = ConnectionMachine(timing, appState)
        self.channelTiming = channelTiming
        self.presenceKey = presenceKey
        context = ChannelMachine.Context(token: nil, appState: appState, isUp: false)
    }

    /// What is to be done since the last call, in this order.
    package mutating func takeActions() -> [ClientAction] {
        defer { actions = [] }
        return actions
    }

    /// When `tick` has something to do; nil where only another input changes anything.
    package var nextDeadline: Moment? {
        (channels.values.map(\.nextDeadline) + [connection.nextDeadline]).compactMap(\.self).min()
    }

    // MARK: The connection

    /// Gives the connection an input, and channels what they have to know of it.
    package mutating func withConnection(_ at: Instant, _ input: (inout ConnectionMachine) -> Void) {
        input(&connection)
        for action in connection.takeActions() {
            switch action {
            case .token(let token):
                context.token = token
                each(at) { $0.token($1, &$2, at) }
            case .up:
                context.isUp = true
                each(at) { $0.socketIsUp($1, &$2, at) }
            case .down(let reason):
                context.isUp = false
                each(at) { channel, context, _ in channel.socketIsDown(reason, context.appState, at) }
            case .sendHeartbeat: actions.append(.send(.heartbeat(refs.next())))
            default: actions.append(.connection(action))
            }
        }
    }

    /// The app is doing something else.
    package mutating func change(to appState: AppState, _ at: Instant) {
        guard appState != context.appState else { return }
        context.appState = appState
        withConnection(at) { $0.change(to: appState, at) }
        // The app's state holds for the whole socket, so one channel says it for all.
        guard context.isUp, let id = channels.filter({ $0.value.isJoined }).keys.min() else { return }
        withChannel(id, at) { channel, _, refs in channel.say(appState, &refs) }
    }

    /// A frame has arrived on the socket of this number.
    package mutating func receive(_ frame: WebSocketFrame, from socket: Int, _ at: Instant) {
        guard socket == connection.socket, connection.isOpen else { return }
        withConnection(at) { $0.heard(at) }
        guard let message = ServerMessage(frame), message.topic != "phoenix" else { return }
        for id in channels.keys.sorted() where channels[id]?.topic == message.topic {
            withChannel(id, at) { $0.receive(message, $1, &$2, at) }
        }
    }

    /// Does what is due.
    package mutating func tick(_ at: Instant) {
        withConnection(at) { $0.tick(at) }
        each(at) { $0.tick($1, &$2, at) }
    }

    /// Leaves all channels, as far as the socket still takes it, and closes the connection.
    package mutating func disconnect(_ at: Instant) {
        each(at) { channel, _, refs in channel.leave(nil, &refs, at) }
        withConnection(at) { $0.disconnect() }
    }

    // MARK: Channels

    /// Makes a channel, which joins when it is subscribed.
    package mutating func open(_ id: ChannelID, _ topic: String, _ configuration: ChannelConfiguration) {
        channels[id] = ChannelMachine(topic: topic, configuration, presenceKey: presenceKey, channelTiming)
    }

    /// An input to a channel, with what channels share.
    package typealias ChannelInput = (inout ChannelMachine, ChannelMachine.Context, inout Refs) -> Void

    /// Gives a channel an input. One that is over by then is forgotten.
    package mutating func withChannel(_ id: ChannelID, _ at: Instant, _ input: ChannelInput) {
        guard var channel = channels[id] else { return }
        // Taken out while it is changed, so that its memory is its own.
        channels[id] = nil
        input(&channel, context, &refs)
        var refusesToken = false
        for action in channel.takeActions() {
            switch action {
            case .send(let message): actions.append(.send(message))
            case .tokenRefused: refusesToken = true
            default: actions.append(.channel(id, action))
            }
        }
        channels[id] = channel.phase == .over ? nil : channel
        if refusesToken { withConnection(at) { $0.tokenRefused(at) } }
    }

    private mutating func each(_ at: Instant, _ input: ChannelInput) {
        for id in channels.keys.sorted() { withChannel(id, at, input) }
    }
}

/// What `ClientMachine` wants done: for the connection, for a channel, or a message to be sent.
package enum ClientAction {
    case connection(ConnectionAction)
    case channel(ChannelID, ChannelAction)
    case send(ClientMessage)
}

/// The number of one channel of a client.
package typealias ChannelID = Int
