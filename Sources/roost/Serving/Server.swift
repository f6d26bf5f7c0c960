import ChangeFeed
import Gateway
import Glibc
import Hub
import Identity
import Logging
import Notify
import Ops
import Push
import Settings

/// `roost serve`: puts the rooms together and runs them until a signal.
struct Server {
    private let configuration: RoostConfiguration
    private let handler: (any HTTPHandler)?
    private let statements: Statements
    private let databaseURL: String
    private let tokens: any TokenVerifier
    private let whenReady: @Sendable () -> Void
    /// Nil: the keys are not the configuration's.
    private let keys: KeyKeeper?
    /// Reads the configuration again. Nil: it stays as it is.
    private let read: (@Sendable () async throws -> RoostConfiguration)?

    /// - Parameter read: reads the configuration again, as it was read for `configuration`.
    init(
        _ configuration: RoostConfiguration, read: @escaping @Sendable () async throws -> RoostConfiguration
    ) async throws {
        let databaseURL = try configuration.requireDatabaseURL(for: "roost serve")
        let keys = try await configuration.openKeys(for: "roost serve")
        self.init(configuration, databaseURL: databaseURL, tokens: keys, keys: keys, read: read)
    }

    /// - Parameters:
    ///   - handler: serves what the hub does not.
    ///   - statements: where the configuration has none.
    ///   - whenReady: called once, after the line that says so.
    init(
        _ configuration: RoostConfiguration, databaseURL: String, tokens: any TokenVerifier,
        handler: (any HTTPHandler)? = nil, statements: Statements = Statements(), keys: KeyKeeper? = nil,
        read: (@Sendable () async throws -> RoostConfiguration)? = nil,
        whenReady: @escaping @Sendable () -> Void = {}
    ) {
        self.configuration = configuration
        self.databaseURL = databaseURL
        self.tokens = tokens
        self.handler = handler
        self.statements = statements
        self.keys = keys
        self.read = read
        self.whenReady = whenReady
    }

    func run() async throws {
        OpenFiles.raiseLimit()
        // A peer that is gone is an error of the write, not of the process.
        signal(SIGPIPE, SIG_IGN)
        let logger = configuration.logger
        if let problem = Pooler.problem(of: databaseURL, within: .seconds(3)) {
            throw RunFailure(problem + ".", .configuration)
        }
        let service = try RunFailure.wrapping { try start(logger) }
        // Until here a signal ends the process: there is nothing yet to take leave of.
        Signals.listen(to: [SIGTERM, SIGINT])
        await service.run()
    }

    private func start(_ logger: Logger) throws -> HubService {
        let health = Health()
        let rooms = Rooms()
        let reload = Reload(configuration, logger: logger, read: read)
        var settings = configuration.gateway
        settings.certificates = try configuration.openCertificate(logger: logger)
        let usersStatement = configuration.usersStatement ?? statements.users
        settings.users = usersStatement.map { _ in UserPresence() }
        let link = GatewayLink()
        let desk = try desk(&settings, logger, link)
        let handlers =
            [PushAPI(service: desk, verifier: tokens, clock: { Clock.now() }) as any HTTPHandler, ClientHealth()]
            + handler.list
        let figures: @Sendable () -> [Figure] = {
            ProcessFigures.all(version: Roost.version)
                + [Figure("roost_ready", .gauge, "1 while /readyz says ok.", health.problem == nil ? 1 : 0)]
                + rooms.figures() + (desk?.figures ?? [])
        }
        let access = OpsAccess(host: configuration.opsHost, token: configuration.opsToken)
        let dashboard = Dashboard(
            access: access, health: health, log: LogOutput.standard.book,
            sources: reload.dashboard(.standard, figures), logger: logger)
        let gateway = Gateway(
            configuration: settings, verifier: tokens, handler: Handlers(handlers: handlers),
            opsHandler: OpsPages(health: health, access: access, figures: figures), opsSocketHandler: dashboard,
            logger: logger)
        link.set(gateway)
        dashboard.attach(gateway)
        let sessions = SessionWriter(
            conninfo: databaseURL, node: configuration.nodeName, book: settings.book, logger: logger)
        let recovers = configuration.recoveryWindowSeconds > 0
        let subscriptions = ChangeSubscriptions(
            configuration: configuration.feed(conninfo: databaseURL), sink: gateway, tap: desk, logger: logger,
            oldestMark: { [book = settings.book] in book.oldestMark() },
            whenFirst: { [book = settings.book] in book.nobodyIsFromBefore() }
        ) { status in
            health.feed(problem: status.problem)
            // Not before: until then another hub may have this one's name, and what is written down would be its.
            if status == .ready, recovers { sessions.start() }
        }
        let authority = PolicyAuthority(conninfo: databaseURL, logger: logger)
        rooms.set(gateway, subscriptions, settings.history)
        health.ask(
            HealthProbes(
                mostBehind: .seconds(configuration.safetyPollSeconds + configuration.readyLagSeconds),
                loops: { gateway.silences }, feed: { subscriptions.behind }))
        let address =
            "\(configuration.socketScheme)://\(configuration.httpHost):\(configuration.httpPort)/realtime/v1/websocket"
        let supervision = Supervision(problem: { health.problem }, beats: { gateway.beats }, logger: logger)
        health.onFirstReady { [whenReady] in
            StandardOutput.line("listening on \(address)")
            supervision?.look()
            whenReady()
        }
        // Pushes take that other hubs can see who is online here, also where the application does not want to know.
        let keeper = PresenceKeeper(
            settings, configuration, conninfo: databaseURL, usersStatement ?? desk.map { _ in Statements.nobody },
            logger)
        sessions.restore()
        gateway.restorePresence(keeper.restore(to: settings, within: configuration.restartSeconds))
        // First, so that nobody is answered who is not written down.
        if recovers { sessions.record { subscriptions.withdrawSessionList(whenDone: $0) } }
        try gateway.start(feed: subscriptions, authority: authority)
        supervision?.begin()
        MemoryReturn().begin()
        authority.start()
        subscriptions.start()
        keeper.start()
        desk?.start()
        return HubService(
            gateway: gateway, subscriptions: subscriptions, authority: authority, keeper: keeper,
            sessions: sessions, desk: desk,
            health: health, reload: reload,
            reloaded: Reload.Rooms(gateway: gateway, desk: desk, keys: keys, supervision: supervision),
            supervision: supervision, logger: logger)
    }
}

extension Server {
    /// What sends pushes, where the operator has configured that; the loops then note what it asks them.
    private func desk(
        _ settings: inout GatewayConfiguration, _ logger: Logger, _ link: GatewayLink
    ) throws -> PushService? {
        guard let apns = try configuration.apns(), let bundle = configuration.push.topic else { return nil }
        let rules = try configuration.pushRules(
            bundle: bundle, audience: statements.audience, facts: statements.facts)
        let presence = PresenceView(
            users: settings.users ?? UserPresence(), devices: UserPresence(notesTransitions: false),
            typing: TypingBoard(), presence: settings.presenceLog ?? PresenceLog())
        settings.users = presence.users
        settings.devices = presence.devices
        settings.typingBoard = presence.typing
        settings.summaryJoins = presence.joins
        settings.presenceLog = presence.presence
        if rules.audience == nil {
            logger.notice("Nobody is alerted of new messages: alerts.audience is not set.")
        }
        return PushService(
            conninfo: databaseURL, rules: rules, apns: apns, presence: presence, logger: logger,
            clock: { Clock.now() }, show: { link.show($0) })
    }
}

extension (any HTTPHandler)? {
    fileprivate var list: [any HTTPHandler] { map { [$0] } ?? [] }
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
