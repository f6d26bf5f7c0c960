import Capture
import ChangeFeed
import Clustering
import Forwarding
import Gateway
import HTTP
import Hub
import Identity
import Listening
import Logging
import Notify
import Ops
import Push
import ServerAPI
import Settings
import Stores
import StreamFiles
import Webhooks
import Wire

/// The rooms of one hub. This is the place where they are made, once, each after those it leans on, and where they start.
struct HubRooms: Sendable {
    let configuration: RoostConfiguration
    let logger: Logger
    let shared: SharedState
    let health: Health
    /// Nil where the keys are not the configuration's.
    let keys: KeyRefresher?
    let reload: Reload
    /// Nil where the operator has configured no pushes.
    let pushService: PushService?
    /// Reads for the operator what became of alerts; nil where no pushes are sent.
    let alertTraces: AlertTraceReader?
    let gateway: Gateway
    let sessions: SessionWriter
    let subscriptions: ChangeService
    let authority: PolicyAuthority
    let messageWriter: MessageWriter
    let presenceWriter: PresenceWriter
    /// Nil where nobody is told who received what.
    let receiptWriter: ReceiptWriter?
    /// Nil where no channels of Postgres are listened to.
    let listener: NotificationListener?
    /// Nil where rows come by triggers alone.
    let capture: WALCapture?
    /// Nil where no backend is told what happens.
    let webhooks: WebhookService?
    /// Nil where no folder for streams is set.
    let streams: FileStreamService?
    /// Nil where no route passes requests on.
    let forwarder: ForwardService?
    /// Nil where the hub is alone.
    let cluster: ClusterService?
    /// Commits the rows of streams that end.
    let streamRows: StreamRowWriter
    /// Nil where systemd did not ask to be told.
    let supervision: Supervision?
    /// Whom the gateway's loops ask.
    private let services: GatewayServices
    private let whenReady: @Sendable () -> Void

    /// Makes the rooms. Reads the certificate and the key for pushes, and waits for nothing.
    init(_ server: Server) throws {
        let (configuration, logger, tokens) = (server.configuration, server.configuration.logger, server.tokens)
        let (databaseURL, statements) = (server.databaseURL, server.statements)
        let health = Health(requiresFeed: configuration.requiresFeed)
        let reload = Reload(configuration, logger: logger, read: server.read)

        // What several rooms share.
        let usersStatement = configuration.usersStatement ?? statements.users
        let certificates = try configuration.openCertificate(logger: logger)
        let pushServices = try configuration.pushServices()
        let receiptsStatement = configuration.push.receiptsStatement ?? statements.receipts
        let shared = SharedState(
            configuration, tellsUsers: usersStatement != nil, tellsReceipts: receiptsStatement != nil,
            sendsPushes: !pushServices.isEmpty)

        // The sockets, and pushes.
        let gateway = Gateway(
            configuration: configuration.gateway, sharing: shared.hub, certificates: certificates, logger: logger)
        let pushService = try Self.pushService(server, pushServices, shared, gateway, logger)

        // What reads and writes the database.
        let places = RecoveryPlaces(window: .seconds(configuration.recoveryWindowSeconds))
        let sessions = SessionWriter(
            conninfo: databaseURL, node: configuration.nodeName, registry: shared.recovery, places: places,
            logger: logger, heldMark: { [log = shared.receiptLog] in log?.oldestMark(at: Clock.now().unix) })
        let recovers = configuration.recoveryWindowSeconds > 0
        let subscriptions = ChangeService(
            configuration: configuration.feed(conninfo: databaseURL, receipts: shared.receiptLog?.tables),
            sink: gateway, observer: pushService,
            logger: logger, places: places,
            oldestMark: { [shared] in shared.oldestMark() },
            whenMarked: { [recovery = shared.recovery] in recovery.hasHandedOn(upTo: $0) },
            whenFirst: { [recovery = shared.recovery] in recovery.nobodyIsFromBefore() }
        ) { status in
            health.feed(problem: status.problem)
            // Not before: until then another hub may have this one's name, and what is written down would be its.
            if status == .ready, recovers { sessions.start() }
        }
        let authority = PolicyAuthority(conninfo: databaseURL, logger: logger)
        let messageWriter = MessageWriter(conninfo: databaseURL, logger: logger)
        let restartWindow = Int64(configuration.restartSeconds) * 1000
        let presenceWriter = PresenceWriter(
            conninfo: databaseURL, node: configuration.nodeName, log: shared.presenceLog, users: shared.users,
            // Pushes take that other hubs can see who is online here, also where the application does not want to know.
            statement: usersStatement ?? pushService.map { _ in Statements.nobody }, logger: logger
        ) { [users = shared.users] left in
            users?.restore(left, until: Clock.now().monotonic + restartWindow)
        }

        let receiptWriter = receiptsStatement.flatMap { statement in
            shared.receiptLog.map {
                ReceiptWriter(conninfo: databaseURL, statement: statement, log: $0, logger: logger)
            }
        }

        let mappings = try configuration.notificationMappings()
        let listener =
            mappings.isEmpty
            ? nil
            : NotificationListener(conninfo: databaseURL, mappings: mappings, sink: gateway, logger: logger) {
                health.notify(problem: $0)
            }
        if listener != nil { health.notify(problem: "the hub does not listen to the channels of notify.channels yet") }

        let capture =
            configuration.capturesFromWAL
            ? WALCapture(conninfo: databaseURL, logger: logger) { health.capture(problem: $0) } : nil
        if capture != nil { health.capture(problem: "the WAL is not read yet") }

        let webhooks = try configuration.webhookService(shared.happenings, logger)

        try server.streams.checkRoutes()
        let streamRows = StreamRowWriter(
            conninfo: databaseURL, rules: try server.streams.closeRules(), logger: logger)
        let streams = try server.streams.setup(streamRows, configuration.sharedStreams(), logger).map {
            try FileStreamService($0)
        }
        let forwarder = try server.streams.forwardService(streams, logger)

        let peerSessions = PeerSessions(registry: shared.recovery) { subscriptions.locate($0, then: $1) }
        let serverAnswers = ServerAnswers(gateway: gateway)
        let cluster = try configuration.cluster(
            shared.hub, logger, connections: { gateway.figures.reduce(0) { $0 + $1.connections } },
            answers: [.sessions: peerSessions, .backends: serverAnswers], report: { health.cluster(problem: $0) })
        if let cluster, recovers {
            shared.recovery.lookElsewhere { peerSessions.ask($0, by: cluster, then: $1) }
        }

        // What answers HTTP requests and the operator.
        let serverAPI = ServerAPI(
            gateway: gateway, verifier: tokens, name: configuration.nodeName, own: serverAnswers,
            peers: cluster.map { cluster in .init(asking: cluster, unreached: { cluster.unreached }) }, logger: logger,
            clock: { Clock.now() })
        let figures = HubFigures(
            health: health, gateway: gateway, history: shared.history, recovery: shared.recovery,
            subscriptions: subscriptions,
            listener: listener, capture: capture, cluster: cluster, webhooks: webhooks, streams: streams,
            forwarder: forwarder,
            streamRows: server.streams.onClose == nil ? nil : streamRows, pushService: pushService,
            receiptWriter: receiptWriter, messageWriter: messageWriter)
        let access = OpsAccess(host: configuration.opsHost, token: configuration.opsToken)
        let handlers: [any HTTPHandler] =
            [
                PushAPI(service: pushService, verifier: tokens, clock: { Clock.now() }), serverAPI,
                RowsAPI(source: subscriptions, verifier: tokens, clock: { Clock.now() }), ClientHealth(),
            ]
            + (server.handler.map { [$0(streams)] } ?? [])
        var services = GatewayServices(verifier: tokens)
        services.feed = subscriptions
        services.authority = authority
        services.messages = messageWriter
        services.streams = streams
        services.forwarder = forwarder
        services.peers = cluster
        services.handler = Handlers(handlers: handlers)
        services.opsHandler = OpsPages(
            health: health, access: access, figures: { figures.all },
            barrier: HubBarrier(
                gateway: gateway, subscriptions: subscriptions, authority: authority, streams: streams, cluster: cluster
            ))
        var sources = reload.dashboard(.standard, { figures.all })
        sources.streams = streams
        let node = configuration.nodeName
        if let cluster { sources.cluster = { cluster.statistics.overview(of: node) } }
        let alertTraces = pushService.map { _ in AlertTraceReader(conninfo: databaseURL, logger: logger) }
        if let alertTraces { sources.alerts = { alertTraces.list($0, limit: $1, then: $2) } }
        sources.disconnectUser = { serverAPI.disconnect($0, then: $1) }
        services.opsSocketHandler = Dashboard(
            access: access, health: health, log: LogOutput.standard.recent, gateway: gateway, sources: sources,
            logger: logger)

        // Who watches over them.
        health.ask(
            HealthProbes(
                mostBehind: .seconds(configuration.safetyPollSeconds + configuration.readyLagSeconds),
                loops: { gateway.silences }, feed: { subscriptions.behind }, capture: { capture?.current.waiting }))
        supervision = Supervision(problem: { health.problem }, heartbeats: { gateway.heartbeats }, logger: logger)

        self.configuration = configuration
        self.logger = logger
        self.shared = shared
        self.health = health
        keys = server.keys
        self.reload = reload
        self.pushService = pushService
        self.alertTraces = alertTraces
        self.gateway = gateway
        self.sessions = sessions
        self.subscriptions = subscriptions
        self.authority = authority
        self.messageWriter = messageWriter
        self.presenceWriter = presenceWriter
        self.receiptWriter = receiptWriter
        self.listener = listener
        self.capture = capture
        self.webhooks = webhooks
        self.streams = streams
        self.forwarder = forwarder
        self.cluster = cluster
        self.streamRows = streamRows
        self.services = services
        whenReady = server.whenReady
    }

    /// Brings back whom the hub's last process served, opens the ports and starts the threads. Reads from the database, for
    /// seconds at most.
    ///
    /// - Throws: `GatewayError` where a port cannot be opened.
    func start() throws {
        let address =
            "\(configuration.socketScheme)://\(configuration.httpHost):\(configuration.httpPort)/realtime/v1/websocket"
        health.onFirstReady { [supervision, whenReady] in
            StandardOutput.line("listening on \(address)")
            supervision?.look()
            whenReady()
        }
        sessions.restore()
        cluster?.start(telling: gateway)
        var restored = presenceWriter.restore()
        // Other hubs know better who was here than what this one wrote down.
        if cluster?.findsOthers(within: .seconds(2)) == true { restored.presences = [] }
        let present = shared.restore(restored, within: configuration.restartSeconds)
        // First, so that nobody is answered who is not written down.
        if configuration.recoveryWindowSeconds > 0 {
            sessions.record { [subscriptions] in subscriptions.withdrawSessionList(whenDone: $0) }
        }
        webhooks?.start()
        streamRows.start()
        streams?.start(telling: StreamSinks(gateway: gateway, forwarder: forwarder))
        forwarder?.start()
        try gateway.start(services, restoring: present)
        supervision?.begin()
        ProgressWatch({ [health] in health.progress }, logger: logger).begin()
        MemoryReturn().begin()
        authority.start()
        messageWriter.start()
        subscriptions.start()
        listener?.start()
        capture?.start()
        presenceWriter.start()
        receiptWriter?.start()
        pushService?.start()
    }

    /// What sends pushes, with the rules of the configuration; nil where no service is configured.
    private static func pushService(
        _ server: Server, _ services: [PushServiceConfiguration], _ shared: SharedState, _ gateway: Gateway,
        _ logger: Logger
    ) throws -> PushService? {
        guard let presenceView = shared.presenceView, !services.isEmpty else { return nil }
        let rules = try server.configuration.pushRules(
            bundle: server.configuration.push.topic ?? "", audience: server.statements.audience,
            facts: server.statements.facts,
            badge: server.statements.badge)
        if rules.audience == nil {
            logger.notice("Nobody is alerted of new messages: alerts.audience is not set.")
        }
        return PushService(
            conninfo: server.databaseURL, rules: rules, services: services, presence: presenceView, logger: logger,
            clock: { Clock.now() }, show: { gateway.show($0) },
            ask: { questions, loop in gateway.deliver([.receipts(questions)], to: loop, whenTaken: {}) })
    }
}

/// The objects that several rooms use at once. Each is safe from any thread; each exists once.
struct SharedState: Sendable {
    /// How far each client's acknowledgements go: the loops write it, the feed keeps what it points to.
    let recovery: SessionRegistry
    /// The broadcasts that are kept, for all loops.
    let history: HistoryStore
    /// The presences of those who were cut off, for all loops.
    let leases = PresenceLeases()
    /// What a backend is told; nil where none is.
    let happenings: Happenings?
    /// Who is present, for whoever writes it down.
    let presenceLog: PresenceLog
    /// How many sockets each user has, here and on other hubs.
    let userTally = UserTally()
    /// Who may not join which channel for a while.
    let bars = ChannelBars()
    /// Which users are online; nil where nobody asks.
    let users: UserPresence?
    /// Who has certainly received what, on its way to the application; nil where it is told nothing.
    let receiptLog: ReceiptLog?
    /// What pushes are decided by; nil where none are sent.
    let presenceView: PresenceView?

    /// - Parameters:
    ///   - tellsUsers: the application is told who is online.
    ///   - tellsReceipts: the application is told who has received what.
    ///   - sendsPushes: it is known who is where, on which device, and who types.
    init(_ configuration: RoostConfiguration, tellsUsers: Bool, tellsReceipts: Bool, sendsPushes: Bool) {
        receiptLog =
            tellsReceipts
            ? ReceiptLog(tables: ReceiptTables(Set(configuration.push.receiptsTables.map { Name($0) }))) : nil
        let window = Int64(configuration.recoveryWindowSeconds) * 1000
        recovery = SessionRegistry(
            window: window, isFeedReady: false, mostOfUser: configuration.sessionsPerUser)
        history = HistoryStore(limits: configuration.rules.limits, window: window)
        happenings = configuration.webhooks.url.map { _ in Happenings(most: configuration.webhooks.queue) }
        // Before those are shown who were present when the last process ended.
        happenings?.started(at: Clock.now().unix)
        presenceLog = PresenceLog(telling: happenings) { Clock.now().unix }
        let users = tellsUsers || sendsPushes ? UserPresence() : nil
        self.users = users
        if sendsPushes, let users {
            presenceView = PresenceView(
                users: users, devices: UserPresence(notesTransitions: false), typing: TypingRegistry(),
                presence: presenceLog)
        } else {
            presenceView = nil
        }
    }

    /// What the hubs of the gateway's loops share of it.
    var hub: HubShared {
        var shared = HubShared(
            recovery: recovery, history: history, leases: leases, presenceLog: presenceLog, users: users,
            devices: presenceView?.devices, typing: presenceView?.typing, userTally: userTally, bars: bars,
            summaryJoins: presenceView?.joins, receipts: presenceView?.receipts)
        shared.happenings = happenings
        shared.receiptLog = receiptLog
        return shared
    }

    /// The mark behind which all lies that somebody may yet be sent: members who come back, and those whose receipts are not written.
    func oldestMark() -> Int? {
        // In this order: a pong's receipts are in the log before it counts.
        let marks = [recovery.oldestMark(), receiptLog?.oldestMark(at: Clock.now().unix)]
        return marks.compactMap { $0 }.min()
    }

    /// Brings back whom the hub's last process served, for a while: whoever comes back in it was never gone.
    ///
    /// - Returns: what the loops are to show.
    func restore(_ restored: RestoredPresence, within seconds: Int) -> [PresenceLeases.Restored] {
        let until = Clock.now().monotonic + Int64(seconds) * 1000
        users?.restore(restored.users, until: until)
        guard seconds > 0 else { return [] }
        for record in restored.presences { presenceLog.put(record) }
        return leases.restore(restored.presences, until: until)
    }
}

/// The operator's statements, where the configuration has none: those of the sample chat, or nothing.
struct Statements {
    var users: String?
    var audience: String?
    var facts: String?
    var badge: String?
    var receipts: String?

    static let ofSampleChat = Statements(
        users: PresenceWriter.statementOfSampleChat, audience: PushStore.audienceOfSampleChat,
        facts: PushStore.factsOfSampleChat, badge: PushStore.badgeOfSampleChat,
        receipts: ReceiptWriter.statementOfSampleChat)

    /// In place of `users.statement`: it tells nobody.
    static let nobody = "select from unnest($1::text[], $2::boolean[], $3::timestamptz[]) where false"
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
