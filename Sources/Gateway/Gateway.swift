import CWebSockets
import Glibc
package import HTTP
package import Hub
package import Logging
import Wire

/// The room between the hub and the sockets: event loops, WebSockets, HTTP.
///
/// `start` binds the ports and starts a thread for each loop. From then on the loops live by themselves; what reaches
/// them from outside (row changes, subscriptions' answers) is posted here and handled on their threads.
///
/// **Shutdown** is in steps that the caller paces: `stopAccepting`, `closeSome` until `connections` is zero, `cutOff` for
/// those that do not go, `stop`.
/// **Overload**: see `Delivery+SlowReaders`; a slow reader is closed at its cap.
///
/// `@unchecked Sendable`: all properties are constant after `start`, which is called once before the gateway is shared;
/// loops are reached only through their inboxes and gauges, which are Sendable.
package final class Gateway: @unchecked Sendable {
    private let configuration: GatewayConfiguration
    let loops: [EventLoop]
    private let seats: SocketSeats
    private let failing: FailingAddresses
    private let unfinished: UnfinishedBytes
    private var threads: [pthread_t] = []

    package init(
        configuration: GatewayConfiguration, verifier: any TokenVerifier, handler: (any HTTPHandler)? = nil,
        opsHandler: (any HTTPHandler)? = nil, opsSocketHandler: (any OpsSocketHandler)? = nil, logger: Logger
    ) {
        self.configuration = configuration
        LWSLog.route(to: logger)
        seats = SocketSeats(limits: configuration.rules.limits)
        failing = FailingAddresses(allowance: configuration.rules.failuresPerMinute)
        unfinished = UnfinishedBytes(cap: configuration.rules.unfinishedBytes)
        let readers = ChangeReaders()
        loops = (0..<configuration.loops).map { [seats, failing, unfinished] in
            EventLoop(
                index: $0, configuration: configuration, seats: seats, failing: failing, unfinished: unfinished,
                readers: readers, verifier: verifier, handler: handler, opsHandler: opsHandler,
                opsSocketHandler: opsSocketHandler, logger: logger)
        }
        for loop in loops { loop.siblings = loops.filter { $0 !== loop }.map(\.inbox) }
    }

    /// Who was present when the hub's last process ended; before `start`.
    package func restorePresence(_ restored: [PresenceBook.Restored]) {
        for loop in loops { loop.hub.restorePresence(restored) }
    }

    package func start(feed: (any ChangeSource)?, authority: (any ChannelAuthority)?) throws(GatewayError) {
        var ports = [(configuration.host, configuration.port)]
        if let port = configuration.opsPort { ports.append((configuration.opsHost, port)) }
        for (host, port) in ports where roost_probe_port(host, Int32(port)) != 0 {
            throw .cannotListen(host: host, port: port, reason: String(cString: strerror(errno)))
        }
        for loop in loops {
            loop.feed = feed
            loop.authority = authority
            try loop.listen()
        }
        for loop in loops {
            var thread = pthread_t()
            pthread_create(
                &thread, nil,
                { argument in
                    guard let argument else { return nil }
                    Unmanaged<EventLoop>.fromOpaque(argument).takeUnretainedValue().run()
                    return nil
                }, Unmanaged.passUnretained(loop).toOpaque())
            threads.append(thread)
        }
    }

    /// Tells the sockets of an activity's user what it shows.
    package func show(_ summary: ActivitySummary) {
        for loop in loops { loop.inbox.post(.show(summary)) }
    }

    /// Other rules from here on, in moments on every loop. Nobody is cut off for what was allowed before.
    package func adopt(_ rules: GatewayRules) {
        seats.adopt(rules.limits)
        failing.adopt(allowance: rules.failuresPerMinute)
        unfinished.adopt(cap: rules.unfinishedBytes)
        configuration.history.adopt(rules.limits)
        for loop in loops { loop.inbox.post(.adopt(rules)) }
    }

    /// Reads the certificate's files again, changed or not; what cannot be used is said in the log. From any thread.
    package func reloadCertificates() {
        guard let certificate = configuration.certificates?.reload() else { return }
        for loop in loops { loop.inbox.post(.present(certificate)) }
    }

    /// The certificate that new connections are shown; nil without TLS.
    package var certificate: Certificate? { configuration.certificates?.certificate }

    // MARK: Figures and shutdown

    package var figures: [LoopFigures] { loops.map(\.gauges.figures) }

    /// WebSockets that are let in; zero: as many as there are files.
    package var capacity: Int { seats.capacity }

    /// For each loop, how long ago it last did its work of every second. From any thread.
    package var silences: [Duration] { loops.map(\.gauges.silence) }

    package var loopCount: Int { loops.count }

    /// For each loop a number that grows once a second while it turns.
    package var beats: [Int] { loops.map { $0.gauges.beat } }

    package func stopAccepting() {
        // Whoever is cut off from here on is expected back at the next process.
        configuration.presences.drain()
        configuration.users?.drain()
        configuration.devices?.drain()
        for loop in loops { loop.inbox.post(.stopAccepting) }
    }

    /// Closes the sockets, each behind what waits for it.
    ///
    /// - Parameter rounds: the last of so many calls is to leave none.
    package func closeSome(rounds: Int) {
        for loop in loops { loop.inbox.post(.closeSome(rounds: rounds)) }
    }

    /// Ends the sockets that are left, without a close frame.
    package func cutOff() {
        for loop in loops { loop.inbox.post(.cutOff) }
    }

    package func stop() {
        for loop in loops { loop.inbox.post(.stop) }
        for thread in threads { pthread_join(thread, nil) }
    }
}

extension Gateway: ChangeSink {
    package func deliver(_ events: [FeedEvent], to loop: Int, whenTaken: @escaping @Sendable () -> Void) {
        loops[loop].inbox.post(.changes(ChangeQueue.Batch(events, whenTaken: whenTaken)))
    }

    package func changeSubscription(_ id: ChangeGroupID, is outcome: ChangeSubscriptionOutcome) {
        loops[id.loop].inbox.post(.subscription(id, outcome))
    }

    package func recovery(
        _ id: RecoveryID, _ steps: [RecoveryStep], whenTaken: @escaping @Sendable () -> Void
    ) {
        let events = steps.map { FeedEvent.recovery(id, $0) }
        loops[id.loop].inbox.post(.changes(ChangeQueue.Batch(events, of: id, whenTaken: whenTaken)))
    }

    package func feed(isReady: Bool) {
        for loop in loops { loop.inbox.post(.feedIsReady(isReady)) }
    }
}
