/// The client's whole logic: the connection and its channels.
///
/// Pure: it has no clock, no randomness and no I/O. Inputs are methods, `takeActions` returns the actions, and `handleDeadlines`
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

    /// The actions since the last call, in order.
    package mutating func takeActions() -> [ClientAction] {
        defer { actions = [] }
        return actions
    }

    /// The next time at which `handleDeadlines` has work; nil if only another input can change anything.
    package var nextDeadline: Moment? {
        (channels.values.map(\.nextDeadline) + [connection.nextDeadline]).compactMap(\.self).min()
    }

    // MARK: The connection

    /// Passes an input to the connection, and its consequences to the channels.
    package mutating func withConnection(_ at: Instant, _ input: (inout ConnectionMachine) -> Void) {
        input(&connection)
        for action in connection.takeActions() {
            switch action {
            case .token(let token):
                context.token = token
                forEachChannel(at) { $0.tokenChanged($1, &$2, at) }
            case .up:
                context.isUp = true
                forEachChannel(at) { $0.socketIsUp($1, &$2, at) }
            case .down(let reason):
                context.isUp = false
                forEachChannel(at) { channel, context, _ in channel.socketIsDown(reason, context.appState, at) }
            case .sendHeartbeat: actions.append(.send(.heartbeat(refs.next())))
            default: actions.append(.connection(action))
            }
        }
    }

    /// The app's state has changed.
    package mutating func changeAppState(to appState: AppState, _ at: Instant) {
        guard appState != context.appState else { return }
        context.appState = appState
        withConnection(at) { $0.changeAppState(to: appState, at) }
        // The app's state applies to the whole socket, so one channel reports it for all.
        guard context.isUp, let id = channels.filter({ $0.value.isJoined }).keys.min() else { return }
        withChannel(id, at) { channel, _, refs in channel.sendAppState(appState, &refs) }
    }

    /// A frame has arrived on the socket with this number.
    package mutating func receiveFrame(_ frame: WebSocketFrame, from socket: Int, _ at: Instant) {
        guard socket == connection.socket, connection.isOpen else { return }
        withConnection(at) { $0.frameReceived(at) }
        guard let message = ServerMessage(frame), message.topic != "phoenix" else { return }
        for id in channels.keys.sorted() where channels[id]?.topic == message.topic {
            withChannel(id, at) { $0.receiveFrame(message, $1, &$2, at) }
        }
    }

    /// Handles what is due.
    package mutating func handleDeadlines(_ at: Instant) {
        withConnection(at) { $0.handleDeadlines(at) }
        forEachChannel(at) { $0.handleDeadlines($1, &$2, at) }
    }

    /// Leaves all channels, as far as the socket still accepts it, and closes the connection.
    package mutating func disconnectAll(_ at: Instant) {
        forEachChannel(at) { channel, _, refs in channel.leaveChannel(nil, &refs, at) }
        withConnection(at) { $0.closeConnection() }
    }

    // MARK: Channels

    /// Adds a channel, which joins once it is subscribed.
    package mutating func openChannel(_ id: ChannelID, _ topic: String, _ configuration: ChannelConfiguration) {
        channels[id] = ChannelMachine(topic: topic, configuration, presenceKey: presenceKey, channelTiming)
    }

    /// An input to a channel, with the state that channels share.
    package typealias ChannelInput = (inout ChannelMachine, ChannelMachine.Context, inout Refs) -> Void

    /// Passes an input to a channel. A channel that is over afterwards is removed.
    package mutating func withChannel(_ id: ChannelID, _ at: Instant, _ input: ChannelInput) {
        guard var channel = channels[id] else { return }
        // Taken out while it is changed, so that it is uniquely referenced and not copied.
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

    private mutating func forEachChannel(_ at: Instant, _ input: ChannelInput) {
        for id in channels.keys.sorted() { withChannel(id, at, input) }
    }
}

/// An action that `ClientMachine` requests: for the connection, for a channel, or a message to send.
package enum ClientAction {
    case connection(ConnectionAction)
    case channel(ChannelID, ChannelAction)
    case send(ClientMessage)
}

/// Identifies a channel of a client.
package typealias ChannelID = Int
