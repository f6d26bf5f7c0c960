import Synchronization

/// What the client and its channels share. When the last of them is gone, so is the connection.
final class Core: Sendable {
    let engine: Engine
    let mirror = StateMirror()
    let configuration: RoostClient.Configuration
    private let inbox: AsyncStream<Command>.Continuation
    private let lastID = Atomic(0)

    init(_ endpoint: Endpoint, _ configuration: RoostClient.Configuration, _ transport: any WebSocketTransport) {
        self.configuration = configuration
        let (commands, inbox) = AsyncStream.makeStream(of: Command.self)
        self.inbox = inbox
        let engine = Engine(endpoint, configuration, transport, inbox: inbox, mirror: mirror)
        self.engine = engine
        Task { await engine.run(commands) }
    }

    deinit { inbox.finish() }

    func nextID() -> Int { lastID.add(1, ordering: .relaxed).newValue }

    func post(_ command: Command) { inbox.yield(command) }

    /// A call whose caller waits for the answer.
    func call(_ channel: ChannelID, _ what: Command.Call) async throws(RoostError) {
        let id = nextID()
        let error = await withTaskCancellationHandler {
            await withCheckedContinuation { answer in post(.call(channel, id, what, answer)) }
        } onCancel: {
            post(.cancel(channel, id))
        }
        if let error { throw error }
    }
}
