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
    func run(_ commands: AsyncStream<ClientCommand>) async {
        for await command in commands { handle(command) }
        await disconnect()
    }

    /// Leaves all channels and closes the connection. Returns when the socket is closed.
    func disconnect() async {
        perform { machine, at in machine.disconnect(at) }
        await socketTask?.value
    }

    private var instant: Instant {
        Instant(now: began.duration(to: clock.now), unix: Date().timeIntervalSince1970, random: .random(in: 0..<1))
    }

    // MARK: Commands

    private func handle(_ command: ClientCommand) {
        switch command {
        case .connect: perform { machine, at in machine.withConnection(at) { $0.connect(at) } }
        case .networkIsBack: perform { machine, at in machine.withConnection(at) { $0.networkIsBack(at) } }
        case .appState(let state): perform { machine, at in machine.change(to: state, at) }
        case .tick:
            timer = nil
            perform { machine, at in machine.tick(at) }
        case .watchState(let id, let mailbox):
            states[id] = mailbox
            mailbox.put(mirror.state)
        case .watchSocket(let id, let mailbox): socketEvents[id] = mailbox
        case .unwatch(let id):
            states[id] = nil
            socketEvents[id] = nil
        case .open(let id, let topic, let configuration, let flag, let replica):
            (flags[id], replicas[id]) = (flag, replica)
            machine.open(id, topic, configuration)
        case .attach(let id, let subscription, let sink, let binding): attach(id, subscription, sink, binding)
        case .detach(let id, let subscription):
            sinks[id]?[subscription] = nil
            perform { machine, at in machine.withChannel(id, at) { channel, _, _ in channel.remove(subscription, at) } }
        case .readAgain(let id, let subscription): readAgain(id, subscription, after: .zero)
        case .release(let id):
            perform { machine, at in machine.withChannel(id, at) { channel, _, refs in channel.leave(nil, &refs, at) } }
            (sinks[id], flags[id], replicas[id]) = (nil, nil, nil)
        case .untrack(let id):
            perform { machine, at in machine.withChannel(id, at) { channel, _, refs in channel.untrack(&refs) } }
        case .typing(let id, let isTyping, let payload):
            perform { machine, at in
                machine.withChannel(id, at) { channel, _, refs in
                    channel.say(typing: isTyping, payload, &refs, at)
                }
            }
        case .openWriter(let id, let writer, let name, let epoch, let progress):
            self.progress[writer] = progress
            perform { machine, at in
                machine.withChannel(id, at) { channel, _, _ in channel.openWriter(writer, name: name, epoch: epoch) }
            }
            subscribe(id)
        case .closeWriter(let id, let writer):
            progress[writer] = nil
            perform { machine, at in machine.withChannel(id, at) { channel, _, _ in channel.closeWriter(writer) } }
        case .call(let id, let call, let what, let answer): handle(what, call, id, answer)
        case .cancel(let id, let call):
            perform { machine, at in machine.withChannel(id, at) { channel, _, _ in channel.cancel(call) } }
        }
    }

    private func handle(_ what: ClientCommand.Call, _ call: CallID, _ id: ChannelID, _ answer: ClientCommand.Answer) {
        guard machine.channels[id] != nil else {
            if case .leave = what { return answer.resume(returning: nil) }
            return answer.resume(returning: .left)
        }
        answers[call] = answer
        switch what {
        case .subscribe: subscribe(id, call)
        case .leave:
            perform { machine, at in machine.withChannel(id, at) { channel, _, refs in channel.leave(call, &refs, at) }
            }
        case .send(let body):
            let limit = configuration.sendBufferBytes
            guard (connection?.pendingBytes ?? 0) + body.count <= limit else {
                answers[call] = nil
                return answer.resume(returning: .bufferFull(limit: limit))
            }
            perform { machine, at in
                machine.withChannel(id, at) { channel, _, refs in channel.send(call, body, &refs, at) }
            }
        case .track(let payload):
            perform { machine, at in
                machine.withChannel(id, at) { channel, _, refs in channel.track(call, payload, &refs, at) }
            }
        case .write(let writer, let order):
            perform { machine, at in
                machine.withChannel(id, at) { channel, _, refs in channel.order(order, of: writer, call, &refs, at) }
            }
        }
    }

    private func subscribe(_ id: ChannelID, _ call: CallID? = nil) {
        perform { machine, at in
            machine.withConnection(at) { $0.connect(at) }
            machine.withChannel(id, at) { $0.subscribe(call, $1, &$2, at) }
        }
    }

    private func attach(_ id: ChannelID, _ subscription: SubscriptionID, _ sink: Sink, _ binding: ChangeRequest?) {
        guard let channel = machine.channels[id] else { return sink.finish(.left) }
        sinks[id, default: [:]][subscription] = sink
        // A sequence that is created later begins with the known state.
        switch sink {
        case .presence(let mailbox): if channel.presence.isKnown { mailbox.put(channel.presence.members) }
        case .typing(let mailbox): if !channel.typing.set.typists.isEmpty { mailbox.put(channel.typing.set) }
        case .stream(let mailbox): mailbox.put(())
        default: break
        }
        perform { machine, at in
            machine.withChannel(id, at) { channel, _, _ in
                if let binding { channel.add(subscription, binding, at) }
                if case .rows(let list) = sink { channel.add(subscription, list.request, stored: list.cursor, at) }
                if case .presence = sink, channel.configuration.presence == .automatic { channel.showPresence(at) }
            }
        }
        if case .stream = sink { subscribe(id) }
    }

    // MARK: Actions

    private func perform(_ input: (inout ClientMachine, Instant) -> Void) {
        input(&machine, instant)
        for action in machine.takeActions() {
            switch action {
            case .send(let message): connection?.send(message.frame)
            case .connection(let action): perform(action)
            case .channel(let id, let action): perform(action, of: id)
            }
        }
        setTimer()
    }

    private func perform(_ action: ConnectionAction) {
        switch action {
        case .ask(let id): ask(id)
        case .cancelAsk: tokenTask?.cancel()
        case .open(let id, let token): open(id, token)
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

    private func perform(_ action: ChannelAction, of id: ChannelID) {
        switch action {
        case .change(let change, let subscriptions):
            for subscription in subscriptions {
                switch sinks[id]?[subscription] {
                case .changes(let mailbox): mailbox.put(.change(change))
                case .rows(let replica):
                    replica.apply(change)
                    if replica.lacksRows { readAgain(id, subscription, after: .seconds(1)) }
                default: break
                }
            }
        case .rowsBegin(let subscriptions, let isResumed):
            for subscription in subscriptions { replica(id, subscription)?.begin(isResumed: isResumed) }
        case .rowsEnd(let answers, let cursor):
            for (subscription, answer) in answers { replica(id, subscription)?.end(answer, cursor: cursor) }
        case .failList(let subscription, let error): sinks[id]?.removeValue(forKey: subscription)?.finish(error)
        case .answer(let call, let error): answers.removeValue(forKey: call)?.resume(returning: error)
        case .over(let error):
            for sink in (sinks.removeValue(forKey: id) ?? [:]).values { sink.finish(error) }
            flags.removeValue(forKey: id)?.raise()
            replicas[id] = nil
        case .kept(let writer, let end): progress[writer]?.end = end
        case .writerFailed(let writer, let error): progress[writer]?.failure = error
        case .stream(let news):
            replicas[id]?.take(news)
            for sink in (sinks[id] ?? [:]).values { sink.take(action) }
        case .presence: forEachSink(of: id) { if case .presence(let box) = $0 { box.put($1.presence.members) } }
        case .typing: forEachSink(of: id) { if case .typing(let box) = $0 { box.put($1.typing.set) } }
        default: for sink in (sinks[id] ?? [:]).values { sink.take(action) }
        }
    }

    private func replica(_ id: ChannelID, _ subscription: SubscriptionID) -> ListReplica? {
        if case .rows(let replica) = sinks[id]?[subscription] { replica } else { nil }
    }

    private func readAgain(_ id: ChannelID, _ subscription: SubscriptionID, after pause: Duration) {
        perform { machine, at in
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

    private func ask(_ id: Int) {
        let callback = configuration.token
        tokenTask = Task {
            do {
                let token = try await callback()
                answered(id, token, "")
            } catch {
                answered(id, nil, String(describing: error))
            }
        }
    }

    private func answered(_ id: Int, _ token: String?, _ failure: String) {
        perform { machine, at in machine.withConnection(at) { $0.token(id, token, failure: failure, at) } }
    }

    private func open(_ id: Int, _ token: String) {
        let request = endpoint.request(token, configuration)
        let transport = transport
        socketTask = Task {
            do throws(TransportFailure) {
                let connection = try await transport.open(request)
                opened(id, connection)
                while true { received(try await connection.receive(), id) }
            } catch {
                ended(id, error)
            }
        }
    }

    private func opened(_ id: Int, _ connection: any WebSocketConnection) {
        guard id == machine.connection.socket, case .opening = machine.connection.phase else {
            return connection.close()
        }
        self.connection = connection
        perform { machine, at in machine.withConnection(at) { $0.opened(id, at) } }
    }

    private func received(_ frame: WebSocketFrame, _ id: Int) {
        perform { machine, at in machine.receive(frame, from: id, at) }
    }

    private func ended(_ id: Int, _ failure: TransportFailure) {
        if id == machine.connection.socket { connection = nil }
        perform { machine, at in machine.withConnection(at) { $0.ended(id, failure, at) } }
    }
}
