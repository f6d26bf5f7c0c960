import ChangeFeed
import Gateway
import Glibc
import Hub
import Logging
import Ops
import ServiceLifecycle
import Settings

/// `roost serve`: puts the rooms together and runs them until a signal.
struct Server {
    private let configuration: RoostConfiguration
    private let handler: (any HTTPHandler)?
    private let usersStatement: String?
    private let databaseURL: String
    private let tokens: any TokenVerifier
    private let whenReady: @Sendable () -> Void

    init(_ configuration: RoostConfiguration) async throws {
        let databaseURL = try configuration.requireDatabaseURL(for: "roost serve")
        let keys = try await configuration.openKeys(for: "roost serve")
        self.init(configuration, databaseURL: databaseURL, tokens: keys)
    }

    /// - Parameters:
    ///   - handler: serves what the hub does not.
    ///   - usersStatement: where the configuration has none.
    ///   - whenReady: called once, after the line that says so.
    init(
        _ configuration: RoostConfiguration, databaseURL: String, tokens: any TokenVerifier,
        handler: (any HTTPHandler)? = nil, usersStatement: String? = nil,
        whenReady: @escaping @Sendable () -> Void = {}
    ) {
        self.configuration = configuration
        self.databaseURL = databaseURL
        self.tokens = tokens
        self.handler = handler
        self.usersStatement = configuration.usersStatement ?? usersStatement
        self.whenReady = whenReady
    }

    func run() async throws {
        OpenFiles.raiseLimit()
        // A peer that is gone is an error of the write, not of the process.
        signal(SIGPIPE, SIG_IGN)
        let logger = configuration.logger
        let service = try RunFailure.wrapping { try start(logger) }
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [service], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
        try await group.run()
    }

    private func start(_ logger: Logger) throws -> HubService {
        let health = Health()
        let rooms = Rooms()
        var settings = configuration.gateway
        settings.users = usersStatement.map { _ in UserPresence() }
        let gateway = Gateway(
            configuration: settings, verifier: tokens, handler: handler,
            opsHandler: OpsPages(health: health) { rooms.figures() }, logger: logger)
        let subscriptions = ChangeSubscriptions(
            configuration: configuration.feed(conninfo: databaseURL), sink: gateway, logger: logger,
            oldestMark: { [book = settings.book] in book.oldestMark() },
            whenFirst: { [book = settings.book] in book.nobodyIsFromBefore() }
        ) { status in
            health.feed(problem: status.problem)
        }
        let authority = PolicyAuthority(conninfo: databaseURL, logger: logger)
        rooms.set(gateway, subscriptions, settings.history)
        let address = "ws://\(configuration.httpHost):\(configuration.httpPort)/realtime/v1/websocket"
        health.onFirstReady { [whenReady] in
            StandardOutput.line("listening on \(address)")
            whenReady()
        }
        let keeper = PresenceKeeper(settings, configuration, conninfo: databaseURL, usersStatement, logger)
        gateway.restorePresence(keeper.restore(to: settings, within: configuration.restartSeconds))
        try gateway.start(feed: subscriptions, authority: authority)
        authority.start()
        subscriptions.start()
        keeper.start()
        return HubService(
            gateway: gateway, subscriptions: subscriptions, authority: authority, keeper: keeper,
            health: health,
            drain: DrainTimes(delaySeconds: configuration.drainDelaySeconds, seconds: configuration.drainSeconds),
            logger: logger)
    }
}

extension FeedStatus {
    /// What keeps changes from flowing, as `/readyz` says it; nil if nothing does.
    fileprivate var problem: String? {
        switch self {
        case .ready: nil
        case .stopped: "the change feed has stopped"
        case .connecting(let reason): reason ?? "connecting to the database"
        }
    }
}
