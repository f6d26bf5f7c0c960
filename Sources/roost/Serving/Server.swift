import Gateway
import Glibc
import HTTP
import Hub
import Identity
import Logging
import Notify
import Ops
import Postgres
import Push
import Settings
import Streams

/// A hub before its start: everything that its rooms are created from.
struct Server {
    let configuration: RoostConfiguration
    /// Creates a handler for further paths; receives the stream service, if there is one.
    let handler: (((any StreamService)?) -> any HTTPHandler)?
    /// Statements for settings that the configuration lacks.
    let statements: Statements
    let databaseURL: String
    let tokens: any TokenVerifier
    let streams: StreamSettings
    /// Called once, after the line that reports that the hub is listening.
    let whenReady: @Sendable () -> Void
    /// Nil if the keys do not come from the configuration.
    let keys: KeyRefresher?
    /// Reads the configuration again; nil if it never changes.
    let read: Reload.Reader?

    /// - Parameter read: reads the configuration again, in the way `configuration` was read.
    init(
        _ configuration: RoostConfiguration, read: @escaping Reload.Reader
    ) async throws {
        let databaseURL = try configuration.requireDatabaseURL(for: "roost serve")
        let keys = try await configuration.openKeys(for: "roost serve")
        self.init(configuration, databaseURL: databaseURL, tokens: keys, keys: keys, read: read)
    }

    init(
        _ configuration: RoostConfiguration, databaseURL: String, tokens: any TokenVerifier,
        handler: (((any StreamService)?) -> any HTTPHandler)? = nil, statements: Statements = Statements(),
        streams: StreamSettings? = nil,
        keys: KeyRefresher? = nil,
        read: Reload.Reader? = nil,
        whenReady: @escaping @Sendable () -> Void = {}
    ) {
        self.configuration = configuration
        self.databaseURL = databaseURL
        self.tokens = tokens
        self.handler = handler
        self.statements = statements
        self.streams = streams ?? configuration.streams
        self.keys = keys
        self.read = read
        self.whenReady = whenReady
    }

    func runUntilSignal() async throws {
        OpenFiles.raiseLimit()
        // Writing to a closed connection fails instead of ending the process.
        signal(SIGPIPE, SIG_IGN)
        // So does writing to a file at its size limit.
        signal(SIGXFSZ, SIG_IGN)
        if let problem = Pooler.problem(of: databaseURL, within: .seconds(3)) {
            throw RunFailure(problem + ".", .configuration)
        }
        let rooms = try RunFailure.wrapping { () throws -> HubRooms in
            let rooms = try HubRooms(self)
            try rooms.start()
            return rooms
        }
        // Until here a signal ends the process: there is nothing to shut down yet.
        Signals.handleSignals(to: [SIGTERM, SIGINT])
        await HubService(rooms: rooms).runUntilSignal()
    }
}
