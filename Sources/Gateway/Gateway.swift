import CWebSockets
import Glibc
package import Hub
package import Logging
package import Streams
import Workers

/// The room between the hub and the sockets: event loops, WebSockets, HTTP.
///
/// `start` creates the loops, binds the ports and starts a thread for each loop. The loops then run by themselves;
/// input from outside (row changes, results of subscriptions) is posted here and handled on their threads.
///
/// **Shutdown** consists of steps that the caller paces: `stopAccepting`, `closeSome` until `connections` is zero,
/// `cutOff` for sockets that do not go, `stop`.
/// **Overload**: see `Delivery+SlowReaders`; a slow reader is closed at its cap.
///
/// Safe from any thread: the loops are reached only through their inboxes and gauges.
package final class Gateway: Sendable {
    let configuration: GatewayConfiguration
    let shared: HubShared
    let limits: SharedLimits
    let certificates: CertificateRefresher?
    let logger: Logger
    let inboxes: [LoopInbox]
    let gauges: [LoopGauges]
    private let threads: [WorkerThread]

    /// - Parameter certificates: nil if clients speak plain HTTP.
    package init(
        configuration: GatewayConfiguration, sharing shared: HubShared,
        certificates: CertificateRefresher? = nil, logger: Logger
    ) {
        self.configuration = configuration
        self.shared = shared
        self.certificates = certificates
        self.logger = logger
        limits = SharedLimits(configuration.rules, tally: shared.userTally)
        inboxes = (0..<configuration.loops).map { _ in LoopInbox() }
        gauges = (0..<configuration.loops).map { _ in LoopGauges() }
        threads = (0..<configuration.loops).map { WorkerThread(named: "roost-loop-\($0)") }
        LWSLog.route(to: logger)
    }

    /// Creates the loops, opens the ports and starts the threads. Call once.
    ///
    /// - Parameter present: the presences at the end of the hub's last process.
    package func start(
        _ services: GatewayServices, restoring present: [PresenceLeases.Restored] = []
    ) throws(GatewayError) {
        var ports = [(configuration.host, configuration.port)]
        if let port = configuration.opsPort { ports.append((configuration.opsHost, port)) }
        for (host, port) in ports where roost_probe_port(host, Int32(port)) != 0 {
            throw .cannotListen(host: host, port: port, reason: String(cString: strerror(errno)))
        }
        let loops = inboxes.indices.map { EventLoop($0, of: self, services: services) }
        for loop in loops { loop.hub.restorePresence(present) }
        for loop in loops { try loop.listen() }
        for (loop, thread) in zip(loops, threads) {
            // Never released: C code refers to the loop until the process ends.
            _ = Unmanaged.passRetained(loop)
            // Created here, and then confined to its thread.
            nonisolated(unsafe) let loop = loop
            thread.start { loop.run() }
        }
    }

    /// Sends an activity's summary to the sockets of its user.
    package func show(_ summary: ActivitySummary) {
        for inbox in inboxes { inbox.post(.show(summary)) }
    }

    /// Replaces the rules, on every loop within moments. Connections keep what was allowed before.
    package func adopt(_ rules: GatewayRules) {
        limits.adopt(rules)
        shared.history.applyLimits(rules.limits)
        for inbox in inboxes { inbox.post(.adopt(rules)) }
    }

    /// Reloads the certificate's files, changed or not; an unusable pair is logged. Safe from any thread.
    package func reloadCertificates() {
        guard let certificate = certificates?.reload() else { return }
        for inbox in inboxes { inbox.post(.present(certificate)) }
    }

    /// The certificate presented to new connections; nil without TLS.
    package var certificate: Certificate? { certificates?.certificate }

    // MARK: Figures and shutdown

    package var figures: [LoopFigures] { gauges.map(\.figures) }

    /// The limit on WebSockets; zero if only the limit of open files applies.
    package var capacity: Int { limits.connections.capacity }

    /// For each loop, the time since its last once-a-second work. Safe from any thread.
    package var silences: [Duration] { gauges.map(\.silence) }

    package var loopCount: Int { inboxes.count }

    /// For each loop, a number that changes every second while the loop runs.
    package var heartbeats: [Int] { gauges.map(\.heartbeat) }

    package func stopAccepting() {
        // A client that is cut off after this is expected back at the next process.
        shared.leases.startDraining()
        shared.users?.startDraining()
        shared.devices?.startDraining()
        for inbox in inboxes { inbox.post(.stopAccepting) }
    }

    /// Closes sockets, each after its pending output.
    ///
    /// - Parameter rounds: how many such calls are to close all sockets.
    package func closeSome(rounds: Int) {
        for inbox in inboxes { inbox.post(.closeSome(rounds: rounds)) }
    }

    /// Ends the remaining sockets, without a close frame.
    package func cutOff() {
        for inbox in inboxes { inbox.post(.cutOff) }
    }

    package func stop() {
        for inbox in inboxes { inbox.post(.stop) }
        for thread in threads { thread.join() }
    }
}

extension Gateway: ChangeSink {
    package func deliverEvents(_ events: [FeedEvent], to loop: Int, whenTaken: @escaping @Sendable () -> Void) {
        inboxes[loop].post(.changes(ChangeQueue.Batch(events, whenTaken: whenTaken)))
    }

    package func changeSubscription(_ id: ChangeGroupID, is outcome: ChangeSubscriptionOutcome) {
        inboxes[id.loop].post(.subscription(id, outcome))
    }

    package func deliverRecovery(
        _ id: RecoveryID, _ steps: [RecoveryStep], whenTaken: @escaping @Sendable () -> Void
    ) {
        let events = steps.map { FeedEvent.recovery(id, $0) }
        inboxes[id.loop].post(.changes(ChangeQueue.Batch(events, of: id, whenTaken: whenTaken)))
    }

    package func feedChanged(isReady: Bool) {
        for inbox in inboxes { inbox.post(.feedIsReady(isReady)) }
    }
}

extension Gateway: PeerSink {
    package func receiveRelays(_ relays: [Relay]) {
        for inbox in inboxes { inbox.post(relays) }
    }

    package func concludeLease(_ conclusion: LeaseConclusion, of member: MemberID, in channel: ChannelKey, loop: Int) {
        let task = LoopTask.conclude(conclusion, member, channel)
        if inboxes.indices.contains(loop) {
            inboxes[loop].post(task)
        } else {
            for inbox in inboxes { inbox.post(task) }
        }
    }
}

extension Gateway: StreamSink {
    package func streamChanged(_ stream: StreamBuffer, for loop: Int) { inboxes[loop].post(.streamChanged(stream)) }
}
