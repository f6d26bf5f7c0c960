import Glibc
import Hub
import Logging
import Postgres
import Workers

/// The loop of a listener's thread: connect, listen, pass notifications on until the connection is lost, try again.
struct ListenerWorker: ~Copyable {
    private let setup: NotificationListener.Setup
    private let stopSignal: StopSignal
    private let published: Published<NotificationStatistics>
    /// By channel.
    private let mappings: [String: [NotificationMapping]]
    private let reach: [ChannelPattern]
    private let backlog: NotificationBacklog
    private var connection: PostgresConnection?
    private var reconnector: Reconnector
    private var log: RateLimitedLog
    private var statistics = NotificationStatistics()
    /// The time of the next liveness check, unless a notification comes first.
    private var checkAt = ContinuousClock.now
    private var order = NotificationOrder(own: "")
    private var hasListened = false

    init(
        _ setup: NotificationListener.Setup, _ stopSignal: StopSignal, _ published: Published<NotificationStatistics>
    ) {
        self.setup = setup
        self.stopSignal = stopSignal
        self.published = published
        mappings = Dictionary(grouping: setup.mappings, by: \.channel)
        reach = setup.mappings.map(\.reach)
        backlog = NotificationBacklog(loops: setup.sink.loopCount, most: setup.bounds.backlog)
        log = RateLimitedLog(logger: setup.logger)
        reconnector = Reconnector(
            first: setup.bounds.firstRetry, logger: setup.logger,
            lost: "The hub cannot listen to the channels of notify.channels for now",
            regained: "The hub listens to the channels of notify.channels again.")
    }

    mutating func runUntilStopped() {
        while !stopSignal.isStopping {
            if connection == nil, reconnector.isDue { connect() }
            receiveNotifications()
            reportGaps()
            published.value = statistics
            waitForWork()
        }
        connection = nil
        statistics.isListening = false
        published.value = statistics
    }

    private mutating func connect() {
        do {
            let fresh = try PostgresConnection(
                ConnectionOptions(conninfo: setup.conninfo), waiter: PlainWaiter(until: stopSignal),
                logger: setup.logger)
            try Primary.demandPrimary(on: fresh)
            // LISTEN takes no parameters; no mapping's name has a quote in it. All in one transaction.
            let listens = (mappings.keys.sorted() + [NotificationOrder.channel]).map { "; listen \"\($0)\"" }.joined()
            try fresh.runScript("set application_name = 'roost notifications'" + listens)
            order = NotificationOrder(own: String(UInt64.random(in: .min ... .max), radix: 36))
            _ = try fresh.query("select pg_notify($1, $2)", [NotificationOrder.channel, order.own])
            connection = fresh
        } catch {
            return connectionLost(because: error)
        }
        reconnector.connectionOpened()
        checkAt = .now + setup.bounds.check
    }

    /// Called once notifications have the same numbers here as on other hubs.
    private mutating func reportBegin() {
        if hasListened { statistics.gaps += 1 }
        hasListened = true
        statistics.isListening = true
        // On the first start, too: clients may have joined before.
        for loop in 0..<setup.sink.loopCount { setup.sink.deliverEvents([.broadcastGap(reach)], to: loop) {} }
        setup.report(nil)
    }

    private mutating func connectionLost(because error: any Error) {
        connection = nil
        statistics.isListening = false
        reconnector.connectionFailed(error, isStopping: stopSignal.isStopping)
        setup.report("notifications of the database are not received: \(error)")
    }

    // MARK: Notifications

    private mutating func receiveNotifications() {
        guard let connection else { return }
        var events: [FeedEvent] = []
        var bytes = 0
        do {
            if checkAt <= .now { _ = try connection.query("select 1", within: setup.bounds.patience) }
            let count = try connection.takeNotifications { channel, payload in
                if channel == NotificationOrder.channel {
                    if order.received(mark: String(decoding: payload, as: UTF8.self)) { reportBegin() }
                    return
                }
                for broadcast in broadcasts(on: channel, of: payload) {
                    events.append(.broadcast(broadcast))
                    bytes += payload.count + Self.overhead
                }
            }
            if count > 0 || checkAt <= .now { checkAt = .now + setup.bounds.check }
        } catch {
            connectionLost(because: error)
        }
        if !events.isEmpty { passOn(events, bytes) }
    }

    /// The approximate memory of a broadcast besides its payload.
    private static let overhead = 200

    private mutating func broadcasts(on channel: String, of payload: [UInt8]) -> [DatabaseBroadcast] {
        guard let number = order.nextNumber(on: channel) else { return [] }
        let payload = NotificationPayload(payload)
        var broadcasts: [DatabaseBroadcast] = []
        for (index, mapping) in (mappings[channel] ?? []).enumerated() {
            do throws(UndeliverableNotification) {
                let (key, message) = try mapping.broadcast(of: payload)
                broadcasts.append(DatabaseBroadcast(key: key, id: "\(number) \(index)", broadcast: message))
            } catch {
                if case .field = error { statistics.withoutField += 1 } else { statistics.impossible += 1 }
                log.logWarning(
                    "Notifications on the channel \(channel) are not delivered: \(error.reason).", about: channel)
            }
        }
        return broadcasts
    }

    private mutating func passOn(_ events: [FeedEvent], _ bytes: Int) {
        var isWhole = true
        for loop in 0..<setup.sink.loopCount {
            guard backlog.admit(bytes, to: loop) else {
                isWhole = false
                statistics.dropped += events.count
                continue
            }
            setup.sink.deliverEvents(events, to: loop) { [backlog] in backlog.noteProcessed(bytes, by: loop) }
        }
        if isWhole {
            statistics.sent += events.count
        } else {
            log.logWarning(
                "Notifications come faster than an event loop passes them on: members are told that messages are missing."
            )
        }
    }

    private mutating func reportGaps() {
        for loop in backlog.takeGaps() {
            statistics.gaps += 1
            setup.sink.deliverEvents([.broadcastGap(reach)], to: loop) {}
        }
    }

    // MARK: Waiting

    /// Waits until there is something to do, or until the hub stops.
    private func waitForWork() {
        var polled = [stopSignal.descriptor, backlog.news.descriptor, connection?.descriptor ?? -1].map {
            pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
        }
        let deadline = connection == nil ? reconnector.retryAt ?? .now : checkAt
        poll(&polled, nfds_t(polled.count), milliseconds(until: deadline))
    }
}
