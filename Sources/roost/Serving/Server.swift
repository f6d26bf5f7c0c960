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

/// A hub to be run: what its rooms are made from. `run` makes them and lets them run until a signal.
struct Server {
    let configuration: RoostConfiguration
    /// Makes what serves what the hub does not; it is given what keeps streams, if there are to be any.
    let handler: (((any StreamService)?) -> any HTTPHandler)?
    /// Taken where the configuration has none.
    let statements: Statements
    let databaseURL: String
    let tokens: any TokenVerifier
    let streams: StreamSettings
    /// Called once, after the line that says that the hub listens.
    let whenReady: @Sendable () -> Void
    /// Nil where the keys are not the configuration's.
    let keys: KeyRefresher?
    /// Reads the configuration again. Nil where it stays as it is.
    let read: Reload.Reader?

    /// - Parameter read: reads the configuration again, as it was read for `configuration`.
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

    func run() async throws {
        OpenFiles.raiseLimit()
        // A peer that is gone is an error of the write, not of the process.
        signal(SIGPIPE, SIG_IGN)
        // So is a file that may not grow.
        signal(SIGXFSZ, SIG_IGN)
        if let problem = Pooler.problem(of: databaseURL, within: .seconds(3)) {
            throw RunFailure(problem + ".", .configuration)
        }
        let rooms = try RunFailure.wrapping { () throws -> HubRooms in
            let rooms = try HubRooms(self)
            try rooms.start()
            return rooms
        }
        // Until here a signal ends the process: there is nothing yet to take leave of.
        Signals.listen(to: [SIGTERM, SIGINT])
        await HubService(rooms: rooms).run()
    }
}
