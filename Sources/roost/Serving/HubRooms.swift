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

/// The rooms of one hub. They are created here, once, each after those it depends on, and started here.
struct HubRooms: Sendable {
    let configuration: RoostConfiguration
    let logger: Logger
    let shared: SharedState
    let health: Health
    /// Nil if the keys do not come from the configuration.
    let keys: KeyRefresher?
    let reload: Reload
    /// Nil if no pushes are configured.
    let pushService: PushService?
    /// Reads alerts' outcomes for the operator; nil if no pushes are sent.
    let alertTraces: AlertTraceReader?
    let gateway: Gateway
    let sessions: SessionWriter
    let subscriptions: ChangeService
    let authority: PolicyAuthority
    let messageWriter: MessageWriter
    let presenceWriter: PresenceWriter
    /// Nil if receipts are not recorded.
    let receiptWriter: ReceiptWriter?
    /// Nil without channels to listen to.
    let listener: NotificationListener?
    /// Nil unless tables are read from the WAL.
    let capture: WALCapture?
    /// Nil without webhooks.
    let webhooks: WebhookService?
    /// Nil without a folder for streams.
    let streams: FileStreamService?
    /// Nil if no route passes requests on.
    let forwarder: ForwardService?
    /// Nil for a single hub.
    let cluster: ClusterService?
    /// Commits the rows of closed streams.
    let streamRows: StreamRowWriter
    /// Nil unless systemd expects reports.
    let supervision: Supervision?
    /// The services that the gateway's loops use.
    private let services: GatewayServices
    private let whenReady: @Sendable () -> Void

    /// Creates the rooms. Reads the certificate and the key for pushes, but waits for nothing.
    init(_ server: Server) throws {
        let (configuration, logger, tokens) = (server.configuration, server.configuration.logger, server.tokens)
        let (databaseURL, statements) = (server.databaseURL, server.statements)
        let health = Health(requiresFeed: configuration.requiresFeed)
        let reload = Reload(configuration, logger: logger, read: server.read)

        // State that several rooms share.
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

        // The rooms that read and write the database.
        let places = RecoveryPlaces(window: .seconds(configuration.recoveryWindowSeconds))
        let sessions = SessionWriter(
            conninfo: databaseURL, node: configuration.nodeName, registry: shared.recovery, places: places,
            logger: logger, heldMark: { [log = shared.receiptLog] in log?.oldestMark(at: Clock.now().unix) })
        let recovers = configuration.recoveryWindowSeconds > 0
        let subscriptions = ChangeService(
            configuration: configuration.feedConfiguration(conninfo: databaseURL, receipts: shared.receiptLog?.tables),
            sink: gateway, observer: pushService,
            logger: logger, places: places,
            oldestMark: { [shared] in shared.oldestMark() },
            whenMarked: { [recovery = shared.recovery] in recovery.hasHandedOn(upTo: $0) },
            whenFirst: { [recovery = shared.recovery] in recovery.nobodyIsFromBefore() }
        ) { status in
            health.reportFeed(problem: status.problem)
            // Not before: until then another hub may be using this hub's name, and would get the sessions that are
            // stored.
            if status == .ready, recovers { sessions.start() }
        }
        let authority = PolicyAuthority(conninfo: databaseURL, logger: logger)
        let messageWriter = MessageWriter(conninfo: databaseURL, logger: logger)
        let restartWindow = Int64(configuration.restartSeconds) * 1000
        let presenceWriter = PresenceWriter(
            conninfo: databaseURL, node: configuration.nodeName, log: shared.presenceLog, users: shared.users,
            // Pushes require that other hubs can see who is online here, even if the application does not record it.
            statement: usersStatement ?? pushService.map { _ in Statements.nobody }, logger: logger
        ) { [users = shared.users] left in
            users?.restoreUsers(left, until: Clock.now().monotonic + restartWindow)
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
                health.reportNotify(problem: $0)
            }
        if listener != nil {
            health.reportNotify(problem: "the hub does not listen to the channels of notify.channels yet")
        }

        let capture =
            configuration.capturesFromWAL
            ? WALCapture(conninfo: databaseURL, logger: logger) { health.reportCapture(problem: $0) } : nil
        if capture != nil { health.reportCapture(problem: "the WAL is not read yet") }

        let webhooks = try configuration.webhookService(shared.happenings, logger)

        try server.streams.checkRoutes()
        let streamRows = StreamRowWriter(
            conninfo: databaseURL, rules: try server.streams.closeRules(), logger: logger)
        let streams = try server.streams.fileServiceSetup(streamRows, configuration.sharedStreams(), logger).map {
            try FileStreamService($0)
        }
        let forwarder = try server.streams.forwardService(streams, logger)

        let peerSessions = PeerSessions(registry: shared.recovery) { subscriptions.locate($0, then: $1) }
        let serverAnswers = ServerAnswers(gateway: gateway)
        let cluster = try configuration.clusterService(
            shared.hub, logger, connections: { gateway.figures.reduce(0) { $0 + $1.connections } },
            answers: [.sessions: peerSessions, .backends: serverAnswers], report: { health.reportCluster(problem: $0) })
        if let cluster, recovers {
            shared.recovery.lookElsewhere { peerSessions.askHubs($0, by: cluster, then: $1) }
        }

        // The handlers of HTTP requests, and the operator's pages.
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
        var sources = reload.dashboardSources(.standard, { figures.all })
        sources.streams = streams
        let node = configuration.nodeName
        if let cluster { sources.cluster = { cluster.statistics.overview(of: node) } }
        let alertTraces = pushService.map { _ in AlertTraceReader(conninfo: databaseURL, logger: logger) }
        if let alertTraces { sources.alerts = { alertTraces.listAlerts($0, limit: $1, then: $2) } }
        sources.disconnectUser = { serverAPI.disconnectUser($0, then: $1) }
        services.opsSocketHandler = Dashboard(
            access: access, health: health, log: LogOutput.standard.recent, gateway: gateway, sources: sources,
            logger: logger)

        // Health and supervision.
        health.setProbes(
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

    /// Restores the state of the clients that the hub's last process served, opens the ports and starts the threads.
    /// Reads from the database, for some seconds at most.
    ///
    /// - Throws: `GatewayError` if a port cannot be opened.
    func start() throws {
        let address =
            "\(configuration.socketScheme)://\(configuration.httpHost):\(configuration.httpPort)/realtime/v1/websocket"
        health.onFirstReady { [supervision, whenReady] in
            StandardOutput.writeLine("listening on \(address)")
            supervision?.reportChanges()
            whenReady()
        }
        sessions.restoreSessions()
        cluster?.start(telling: gateway)
        var restored = presenceWriter.restore()
        // Other hubs know better who was present here than this hub's own record.
        if cluster?.findsOthers(within: .seconds(2)) == true { restored.presences = [] }
        let present = shared.restorePresence(restored, within: configuration.restartSeconds)
        // First, so that no client is answered before its session can be stored.
        if configuration.recoveryWindowSeconds > 0 {
            sessions.startRecording { [subscriptions] in subscriptions.withdrawSessionList(whenDone: $0) }
        }
        webhooks?.start()
        streamRows.start()
        streams?.start(telling: StreamSinks(gateway: gateway, forwarder: forwarder))
        forwarder?.start()
        try gateway.start(services, restoring: present)
        supervision?.startReporting()
        ProgressWatch({ [health] in health.progress }, logger: logger).startChecking()
        MemoryReturn().startTimer()
        authority.start()
        messageWriter.start()
        subscriptions.start()
        listener?.start()
        capture?.start()
        presenceWriter.start()
        receiptWriter?.start()
        pushService?.start()
    }

    /// Makes the push service with the rules of the configuration; nil if no service is configured.
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
            ask: { questions, loop in gateway.deliverEvents([.receipts(questions)], to: loop, whenTaken: {}) })
    }
}

/// The objects that several rooms use at once. Each is safe from any thread and exists once.
struct SharedState: Sendable {
    /// Each client's acknowledged position: the loops write it, and the feed keeps the changes from there on.
    let recovery: SessionRegistry
    /// The history of broadcasts, for all loops.
    let history: HistoryStore
    /// The presences of disconnected members, for all loops.
    let leases = PresenceLeases()
    /// Events for webhooks; nil without them.
    let happenings: Happenings?
    /// All presences, for storing them.
    let presenceLog: PresenceLog
    /// The number of each user's sockets, here and on other hubs.
    let userTally = UserTally()
    /// Users that are barred from channels for a while.
    let bars = ChannelBars()
    /// The users that are online; nil if nothing needs them.
    let users: UserPresence?
    /// Proven receipts on their way to the application; nil if they are not recorded.
    let receiptLog: ReceiptLog?
    /// The data that decides about pushes; nil if none are sent.
    let presenceView: PresenceView?

    /// - Parameters:
    ///   - tellsUsers: records users' online status for the application.
    ///   - tellsReceipts: records receipts for the application.
    ///   - sendsPushes: tracks users' sockets, their devices, and typing.
    init(_ configuration: RoostConfiguration, tellsUsers: Bool, tellsReceipts: Bool, sendsPushes: Bool) {
        receiptLog =
            tellsReceipts
            ? ReceiptLog(tables: ReceiptTables(Set(configuration.push.receiptsTables.map { Name($0) }))) : nil
        let window = Int64(configuration.recoveryWindowSeconds) * 1000
        recovery = SessionRegistry(
            window: window, isFeedReady: false, mostOfUser: configuration.sessionsPerUser)
        history = HistoryStore(limits: configuration.rules.limits, window: window)
        happenings = configuration.webhooks.url.map { _ in Happenings(most: configuration.webhooks.queue) }
        // Before the members are restored that were present when the last process ended.
        happenings?.hubStarted(at: Clock.now().unix)
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

    /// The part of it that the hubs of the gateway's loops share.
    var hub: HubShared {
        var shared = HubShared(
            recovery: recovery, history: history, leases: leases, presenceLog: presenceLog, users: users,
            devices: presenceView?.devices, typing: presenceView?.typing, userTally: userTally, bars: bars,
            summaryJoins: presenceView?.joins, receipts: presenceView?.receipts)
        shared.happenings = happenings
        shared.receiptLog = receiptLog
        return shared
    }

    /// The mark after which changes may still be needed: by members that return, and for receipts that are not written
    /// yet.
    func oldestMark() -> Int? {
        // The order matters: a pong's receipts are in the log before it counts.
        let marks = [recovery.oldestMark(), receiptLog?.oldestMark(at: Clock.now().unix)]
        return marks.compactMap { $0 }.min()
    }

    /// Restores the presences that the hub's last process knew for a while: a member that returns in time was never
    /// gone.
    ///
    /// - Returns: the presences for the loops to show.
    func restorePresence(_ restored: RestoredPresence, within seconds: Int) -> [PresenceLeases.Restored] {
        let until = Clock.now().monotonic + Int64(seconds) * 1000
        users?.restoreUsers(restored.users, until: until)
        guard seconds > 0 else { return [] }
        for record in restored.presences { presenceLog.putRecord(record) }
        return leases.restoreLeases(restored.presences, until: until)
    }
}

/// Statements for settings that the configuration lacks: those of the sample chat, or none.
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

    /// Replaces `users.statement`; writes nothing.
    static let nobody = "select from unnest($1::text[], $2::boolean[], $3::timestamptz[]) where false"
}

extension FeedStatus {
    /// The reason why changes do not flow, as in `/readyz`; nil if they do.
    fileprivate var problem: String? {
        switch self {
        case .ready: nil
        case .stopped: "the change feed has stopped"
        case .connecting(let reason): reason ?? "connecting to the database"
        }
    }
}
