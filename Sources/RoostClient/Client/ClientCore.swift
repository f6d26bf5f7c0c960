import Synchronization

/// The state shared by a client, its channels and their sequences. The connection ends with the last of them. Callable
/// from any thread.
final class ClientCore: Sendable {
    let engine: Engine
    let mirror = StateMirror()
    let configuration: RoostClient.Configuration
    private let inbox: AsyncStream<ClientCommand>.Continuation
    private let lastID = Atomic(0)

    init(_ endpoint: HubEndpoint, _ configuration: RoostClient.Configuration, _ transport: any WebSocketTransport) {
        self.configuration = configuration
        let (commands, inbox) = AsyncStream.makeStream(of: ClientCommand.self)
        self.inbox = inbox
        let engine = Engine(endpoint, configuration, transport, inbox: inbox, mirror: mirror)
        self.engine = engine
        Task { await engine.runCommands(commands) }
    }

    deinit { inbox.finish() }

    func nextID() -> Int { lastID.add(1, ordering: .relaxed).newValue }

    /// Sends the engine a command without waiting.
    func postCommand(_ command: ClientCommand) { inbox.yield(command) }

    /// Sends the engine a command and waits for the result.
    func callEngine(_ channel: ChannelID, _ what: ClientCommand.Call) async throws(RoostError) {
        let id = nextID()
        let error = await withTaskCancellationHandler {
            await withCheckedContinuation { answer in postCommand(.call(channel, id, what, answer)) }
        } onCancel: {
            postCommand(.cancel(channel, id))
        }
        if let error { throw error }
    }
}

/// Commands from the app's calls to the engine. All of them go through one queue and so stay in order, whether the
/// caller can wait or not (as when creating or dropping a sequence).
enum ClientCommand: Sendable {
    case connect
    case networkIsBack
    case appState(AppState)
    /// A deadline of the state machines has passed.
    case tick

    case watchState(SubscriptionID, Mailbox<ConnectionState>)
    case watchSocket(SubscriptionID, Mailbox<SocketEvent>)
    case unwatch(SubscriptionID)

    case open(ChannelID, topic: String, ChannelConfiguration, ChannelFlag, StreamReplica)
    case attach(ChannelID, SubscriptionID, Sink, ChangeRequest?)
    case detach(ChannelID, SubscriptionID)
    /// Read the rows of a list again.
    case readAgain(ChannelID, SubscriptionID)
    /// Leave the channel: neither it nor its sequences are referenced any more.
    case release(ChannelID)
    case untrack(ChannelID)
    case typing(ChannelID, Bool, [UInt8])
    case openWriter(ChannelID, WriterID, name: String, epoch: Int, StreamProgress)
    /// Remove a writer that is not referenced any more.
    case closeWriter(ChannelID, WriterID)

    case call(ChannelID, CallID, Call, Answer)
    case cancel(ChannelID, CallID)

    /// A call of the app whose task waits for the result.
    enum Call: Sendable {
        case subscribe
        case leave
        case send(ClientMessage.Body)
        case track([UInt8])
        case write(WriterID, WriterOrder)
    }

    typealias Answer = CheckedContinuation<RoostError?, Never>
}

/// The buffer of one sequence of a channel, by the kind of sequence.
enum Sink: Sendable {
    case changes(Mailbox<ChangeSignal>)
    /// The list's content is in its replica; the buffer only signals news.
    case rows(ListReplica)
    case broadcasts(String, Mailbox<IncomingBroadcast>)
    case presence(Mailbox<[String: [PresenceMember]]>)
    case typing(Mailbox<TypingSet>)
    case occupancy(Mailbox<Occupancy>)
    case events(Mailbox<ChannelEvent>)
    case messages(Mailbox<ServerMessage>)
    /// The stream's content is in the channel's replica; the buffer only signals news.
    case stream(Mailbox<Void>)

    func finish(_ error: RoostError?) {
        switch self {
        case .changes(let mailbox): mailbox.finish(error)
        case .rows(let replica): replica.finish(error)
        case .broadcasts(_, let mailbox): mailbox.finish(error)
        case .stream(let mailbox): mailbox.finish(error)
        // These end without an error: the last event tells how the channel ended.
        case .presence(let mailbox): mailbox.finish()
        case .typing(let mailbox): mailbox.finish()
        case .occupancy(let mailbox): mailbox.finish()
        case .events(let mailbox): mailbox.finish()
        case .messages(let mailbox): mailbox.finish()
        }
    }

    /// Puts an action for all sequences of a kind into the buffer, if the sequence is of that kind.
    func putAction(_ action: ChannelAction) {
        switch (action, self) {
        case (.expired(let reason), .changes(let mailbox)): mailbox.put(.expired(reason: reason))
        case (.failChanges(let error), .changes(let mailbox)): mailbox.finish(error)
        case (.failChanges(let error), .rows(let replica)): replica.finish(error)
        case (.listsAreLive(let isLive, let cursor), .rows(let replica)): replica.setLive(isLive, cursor: cursor)
        case (.broadcast(let broadcast), .broadcasts(let event, let mailbox)) where broadcast.event == event:
            mailbox.put(broadcast)
        case (.occupancy(let occupancy), .occupancy(let mailbox)): mailbox.put(occupancy)
        case (.event(let event), .events(let mailbox)): mailbox.put(event)
        case (.message(let message), .messages(let mailbox)): mailbox.put(message)
        case (.stream, .stream(let mailbox)): mailbox.put(())
        default: break
        }
    }
}

/// The connection's state for the UI, readable without waiting for the engine.
final class StateMirror: Sendable {
    private let value = Mutex(ConnectionState.idle)

    var state: ConnectionState {
        get { value.withLock { $0 } }
        set { value.withLock { $0 = newValue } }
    }
}

/// Whether a channel is over, readable without waiting for the engine.
final class ChannelFlag: Sendable {
    private let value = Atomic(false)

    var isOver: Bool { value.load(ordering: .acquiring) }

    func setOver() { value.store(true, ordering: .releasing) }
}
