import Foundation

/// Executes the actions of `ClientMachine`: the only place where the client's logic meets sockets, clocks and the app's
/// callbacks.
actor Engine {
    private var machine: ClientMachine
    private let configuration: RoostClient.Configuration
    private let endpoint: HubEndpoint
    private let transport: any WebSocketTransport
    private let inbox: AsyncStream<ClientCommand>.Continuation
    private let mirror: StateMirror
    private let clock = ContinuousClock()
    private let began: ContinuousClock.Instant

    private var connection: (any WebSocketConnection)?
    private var socketTask: Task<Void, Never>?
    private var tokenTask: Task<Void, Never>?
    private var timer: (at: Moment, task: Task<Void, Never>)?

    private var states: [SubscriptionID: Mailbox<ConnectionState>] = [:]
    private var socketEvents: [SubscriptionID: Mailbox<SocketEvent>] = [:]
    private var sinks: [ChannelID: [SubscriptionID: Sink]] = [:]
    private var flags: [ChannelID: ChannelFlag] = [:]
    private var replicas: [ChannelID: StreamReplica] = [:]
    private var progress: [WriterID: StreamProgress] = [:]
    private var answers: [CallID: ClientCommand.Answer] = [:]

    init(
        _ endpoint: HubEndpoint, _ configuration: RoostClient.Configuration, _ transport: any WebSocketTransport,
        inbox: AsyncStream<ClientCommand>.Continuation, mirror: StateMirror
    ) {
        self.endpoint = endpoint
        self.configuration = configuration
        self.transport = transport
        self.inbox = inbox
        self.mirror = mirror
        began = clock.now
        machine = ClientMachine(
            configuration.connectionTiming, configuration.channelTiming, presenceKey: configuration.presenceKey)
    }

    /// Handles commands until the last sender is gone, and then closes the connection.
    func runCommands(_ commands: AsyncStream<ClientCommand>) async {
        for await command in commands { handleCommand(command) }
        await disconnect()
    }

    /// Leaves all channels and closes the connection. Returns when the socket is closed.
    func disconnect() async {
        performInput { machine, at in machine.disconnectAll(at) }
        await socketTask?.value
    }

    private var instant: Instant {
        Instant(now: began.duration(to: clock.now), unix: Date().timeIntervalSince1970, random: .random(in: 0..<1))
    }

    // MARK: Commands

    private func handleCommand(_ command: ClientCommand) {
        switch command {
        case .connect: performInput { machine, at in machine.withConnection(at) { $0.connect(at) } }
        case .networkIsBack: performInput { machine, at in machine.withConnection(at) { $0.networkIsBack(at) } }
        case .appState(let state): performInput { machine, at in machine.changeAppState(to: state, at) }
        case .tick:
            timer = nil
            performInput { machine, at in machine.handleDeadlines(at) }
        case .watchState(let id, let mailbox):
            states[id] = mailbox
            mailbox.put(mirror.state)
        case .watchSocket(let id, let mailbox): socketEvents[id] = mailbox
        case .unwatch(let id):
            states[id] = nil
            socketEvents[id] = nil
        case .open(let id, let topic, let configuration, let flag, let replica):
            (flags[id], replicas[id]) = (flag, replica)
            machine.openChannel(id, topic, configuration)
        case .attach(let id, let subscription, let sink, let binding): attachSink(id, subscription, sink, binding)
        case .detach(let id, let subscription):
            sinks[id]?[subscription] = nil
            performInput { machine, at in
                machine.withChannel(id, at) { channel, _, _ in channel.removeSequence(subscription, at) }
            }
        case .readAgain(let id, let subscription): readAgain(id, subscription, after: .zero)
        case .release(let id):
            performInput { machine, at in
                machine.withChannel(id, at) { channel, _, refs in channel.leaveChannel(nil, &refs, at) }
            }
            (sinks[id], flags[id], replicas[id]) = (nil, nil, nil)
        case .untrack(let id):
            performInput { machine, at in
                machine.withChannel(id, at) { channel, _, refs in channel.untrackPresence(&refs) }
            }
        case .typing(let id, let isTyping, let payload):
            performInput { machine, at in
                machine.withChannel(id, at) { channel, _, refs in
                    channel.sendTyping(typing: isTyping, payload, &refs, at)
                }
            }
        case .openWriter(let id, let writer, let name, let epoch, let progress):
            self.progress[writer] = progress
            performInput { machine, at in
                machine.withChannel(id, at) { channel, _, _ in channel.openWriter(writer, name: name, epoch: epoch) }
            }
            subscribeChannel(id)
        case .closeWriter(let id, let writer):
            progress[writer] = nil
            performInput { machine, at in machine.withChannel(id, at) { channel, _, _ in channel.closeWriter(writer) } }
        case .call(let id, let call, let what, let answer): handleCall(what, call, id, answer)
        case .cancel(let id, let call):
            performInput { machine, at in machine.withChannel(id, at) { channel, _, _ in channel.cancelCall(call) } }
        }
    }

    private func handleCall(_ what: ClientCommand.Call, _ call: CallID, _ id: ChannelID, _ answer: ClientCommand.Answer)
    {
        guard machine.channels[id] != nil else {
            if case .leave = what { return answer.resume(returning: nil) }
            return answer.resume(returning: .left)
        }
        answers[call] = answer
        switch what {
        case .subscribe: subscribeChannel(id, call)
        case .leave:
            performInput { machine, at in
                machine.withChannel(id, at) { channel, _, refs in channel.leaveChannel(call, &refs, at) }
            }
        case .send(let body):
            let limit = configuration.sendBufferBytes
            guard (connection?.pendingBytes ?? 0) + body.count <= limit else {
                answers[call] = nil
                return answer.resume(returning: .bufferFull(limit: limit))
            }
            performInput { machine, at in
                machine.withChannel(id, at) { channel, _, refs in channel.sendBroadcast(call, body, &refs, at) }
            }
        case .track(let payload):
            performInput { machine, at in
                machine.withChannel(id, at) { channel, _, refs in channel.trackPresence(call, payload, &refs, at) }
            }
        case .write(let writer, let order):
            performInput { machine, at in
                machine.withChannel(id, at) { channel, _, refs in channel.carryOut(order, of: writer, call, &refs, at) }
            }
        }
    }

    private func subscribeChannel(_ id: ChannelID, _ call: CallID? = nil) {
        performInput { machine, at in
            machine.withConnection(at) { $0.connect(at) }
            machine.withChannel(id, at) { $0.subscribe(call, $1, &$2, at) }
        }
    }

    private func attachSink(_ id: ChannelID, _ subscription: SubscriptionID, _ sink: Sink, _ binding: ChangeRequest?) {
        guard let channel = machine.channels[id] else { return sink.finish(.left) }
        sinks[id, default: [:]][subscription] = sink
        // A sequence that is created later begins with the known state.
        switch sink {
        case .presence(let mailbox): if channel.presence.isKnown { mailbox.put(channel.presence.members) }
        case .typing(let mailbox): if !channel.typing.set.typists.isEmpty { mailbox.put(channel.typing.set) }
        case .stream(let mailbox): mailbox.put(())
        default: break
        }
        performInput { machine, at in
            machine.withChannel(id, at) { channel, _, _ in
                if let binding { channel.addSequence(subscription, binding, at) }
                if case .rows(let list) = sink { channel.addList(subscription, list.request, stored: list.cursor, at) }
                if case .presence = sink, channel.configuration.presence == .automatic { channel.showPresence(at) }
            }
        }
        if case .stream = sink { subscribeChannel(id) }
    }

    // MARK: Actions

    private func performInput(_ input: (inout ClientMachine, Instant) -> Void) {
        input(&machine, instant)
        for action in machine.takeActions() {
            switch action {
            case .send(let message): connection?.send(message.frame)
            case .connection(let action): performConnectionAction(action)
            case .channel(let id, let action): performChannelAction(action, of: id)
            }
        }
        setTimer()
    }

    private func performConnectionAction(_ action: ConnectionAction) {
        switch action {
        case .ask(let id): requestToken(id)
        case .cancelAsk: tokenTask?.cancel()
        case .open(let id, let token): openSocket(id, token)
        case .close:
            if let connection { connection.close() } else { socketTask?.cancel() }
            connection = nil
        case .show(let state):
            mirror.state = state
            for mailbox in states.values { mailbox.put(state) }
        case .event(let event): for mailbox in socketEvents.values { mailbox.put(event) }
        // The machine has handled these itself.
        case .up, .down, .token, .sendHeartbeat: break
        }
    }

    private func performChannelAction(_ action: ChannelAction, of id: ChannelID) {
        switch action {
        case .change(let change, let subscriptions):
            for subscription in subscriptions {
                switch sinks[id]?[subscription] {
                case .changes(let mailbox): mailbox.put(.change(change))
                case .rows(let replica):
                    replica.applyChange(change)
                    if replica.lacksRows { readAgain(id, subscription, after: .seconds(1)) }
                default: break
                }
            }
        case .rowsBegin(let subscriptions, let isResumed):
            for subscription in subscriptions { listReplica(id, subscription)?.readingBegan(isResumed: isResumed) }
        case .rowsEnd(let answers, let cursor):
            for (subscription, answer) in answers {
                listReplica(id, subscription)?.readingEnded(answer, cursor: cursor)
            }
        case .failList(let subscription, let error): sinks[id]?.removeValue(forKey: subscription)?.finish(error)
        case .answer(let call, let error): answers.removeValue(forKey: call)?.resume(returning: error)
        case .over(let error):
            for sink in (sinks.removeValue(forKey: id) ?? [:]).values { sink.finish(error) }
            flags.removeValue(forKey: id)?.setOver()
            replicas[id] = nil
        case .kept(let writer, let end): progress[writer]?.end = end
        case .writerFailed(let writer, let error): progress[writer]?.failure = error
        case .stream(let news):
            replicas[id]?.applyNews(news)
            for sink in (sinks[id] ?? [:]).values { sink.putAction(action) }
        case .presence: forEachSink(of: id) { if case .presence(let box) = $0 { box.put($1.presence.members) } }
        case .typing: forEachSink(of: id) { if case .typing(let box) = $0 { box.put($1.typing.set) } }
        default: for sink in (sinks[id] ?? [:]).values { sink.putAction(action) }
        }
    }

    private func listReplica(_ id: ChannelID, _ subscription: SubscriptionID) -> ListReplica? {
        if case .rows(let replica) = sinks[id]?[subscription] { replica } else { nil }
    }

    private func readAgain(_ id: ChannelID, _ subscription: SubscriptionID, after pause: Duration) {
        performInput { machine, at in
            machine.withChannel(id, at) { channel, _, _ in channel.readAgain(subscription, after: pause, at) }
        }
    }

    private func forEachSink(of id: ChannelID, _ body: (Sink, ChannelMachine) -> Void) {
        guard let channel = machine.channels[id] else { return }
        for sink in (sinks[id] ?? [:]).values { body(sink, channel) }
    }

    private func setTimer() {
        let deadline = machine.nextDeadline
        guard deadline != timer?.at else { return }
        timer?.task.cancel()
        timer = deadline.map { at in
            let (inbox, clock, until) = (inbox, clock, began + at)
            let task = Task {
                // An error means that the timer was cancelled.
                do { try await clock.sleep(until: until) } catch { return }
                inbox.yield(.tick)
            }
            return (at, task)
        }
    }

    // MARK: Tokens and sockets

    private func requestToken(_ id: Int) {
        let callback = configuration.token
        tokenTask = Task {
            do {
                let token = try await callback()
                tokenArrived(id, token, "")
            } catch {
                tokenArrived(id, nil, String(describing: error))
            }
        }
    }

    private func tokenArrived(_ id: Int, _ token: String?, _ failure: String) {
        performInput { machine, at in machine.withConnection(at) { $0.tokenArrived(id, token, failure: failure, at) } }
    }

    private func openSocket(_ id: Int, _ token: String) {
        let request = endpoint.upgradeRequest(token, configuration)
        let transport = transport
        socketTask = Task {
            do throws(TransportFailure) {
                let connection = try await transport.open(request)
                socketOpened(id, connection)
                while true { frameReceived(try await connection.receive(), id) }
            } catch {
                socketEnded(id, error)
            }
        }
    }

    private func socketOpened(_ id: Int, _ connection: any WebSocketConnection) {
        guard id == machine.connection.socket, case .opening = machine.connection.phase else {
            return connection.close()
        }
        self.connection = connection
        performInput { machine, at in machine.withConnection(at) { $0.socketOpened(id, at) } }
    }

    private func frameReceived(_ frame: WebSocketFrame, _ id: Int) {
        performInput { machine, at in machine.receiveFrame(frame, from: id, at) }
    }

    private func socketEnded(_ id: Int, _ failure: TransportFailure) {
        if id == machine.connection.socket { connection = nil }
        performInput { machine, at in machine.withConnection(at) { $0.socketEnded(id, failure, at) } }
    }
}
