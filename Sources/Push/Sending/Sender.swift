import DequeModule
import Hub
import Logging
import Workers

/// Decides what is sent when, and on which connection, and determines each outcome. It has no clock and no socket of its own.
///
/// Invariants
///   - Each notification that is added has exactly one outcome.
///   - A request is in flight on one connection only; reports about it from another connection are ignored.
///   - A notification that left and was not answered is sent again only if it allows that.
struct Sender<Transport: PushTransport> {
    let rules: SenderRules
    var dialect: any PushDialect
    let transport: Transport
    var queue: SendQueue
    /// The request for a credential under way.
    var fetch: CredentialFetch?
    /// The number of failed requests for credentials in a row.
    var credentialFailures = 0
    var environments = EnvironmentCache()
    /// Notifications whose token APNs did not know, and the time until which the other environment may be reached, in monotonic
    /// milliseconds.
    var detours: Deque<(ticket: SendQueue.Ticket, until: Int64)> = []
    var pools: [ServerName: ConnectionPool] = [:]
    var servers: [PushTransport.Connection: ServerName] = [:]
    var inFlight: [SendQueue.Ticket: InFlightRequest] = [:]
    /// All requests by the time when they left, in monotonic milliseconds; finished ones are skipped.
    var departures: Deque<(ticket: SendQueue.Ticket, sent: Int64)> = []
    var counts = PushStatistics()
    var notices: [Notice] = []
    /// The time when the operator may again be warned of single answers, in monotonic milliseconds.
    var nextWarning: Int64 = 0
    var random: any RandomNumberGenerator
    private(set) var isStopping = false

    init(
        _ dialect: any PushDialect, over transport: Transport,
        random: any RandomNumberGenerator = SystemRandomNumberGenerator()
    ) {
        rules = SenderRules(dialect.limits, hasTwoHosts: dialect.hasTwoHosts)
        self.dialect = dialect
        self.transport = transport
        self.random = random
        queue = SendQueue(capacity: rules.queue)
    }

    mutating func add(_ push: Push, at now: HubTime) {
        if let outcome = dialect.outcomeUnsent(push) { return queue.finished.append((push, outcome)) }
        let server = server(for: push)
        var push = push
        guard limitStranger(server, &push, at: now) else { return }
        queue.add(push, to: server, at: now)
        for server in [server, server.counterpart].compactMap({ $0 }) where pools[server] == nil {
            pools[server] = ConnectionPool()
        }
    }

    /// Does what is due: call it after each addition and event, and at `nextDue`.
    mutating func advance(to now: HubTime) {
        queue.advance(to: now)
        endSilentRequests(at: now)
        endDetours(at: now)
        fetchCredential(at: now)
        for server in pools.keys { redirect(from: server, at: now) }
        forgetStrangers()
        for server in pools.keys {
            keepAlive(server, at: now)
            fill(server, at: now)
        }
        if isStopping { queue.finishWaiting(.stopped) }
    }

    /// Stops sending. Waiting notifications end at once; those in flight end when they are answered, or with `abandon`.
    mutating func stop() {
        isStopping = true
        queue.finishWaiting(.stopped)
    }

    /// Ends all notifications still in flight.
    mutating func abandon() {
        for (ticket, request) in inFlight {
            let hasLeft = transport.cancel(ticket, on: request.connection) ?? true
            queue.finish(ticket, hasLeft ? .unanswered : .stopped)
        }
        inFlight = [:]
    }

    mutating func takeFinished() -> [(Push, PushOutcome)] {
        let finished = queue.takeFinished()
        for (push, outcome) in finished {
            counts.count(outcome)
            releaseStranger(push)
        }
        return finished
    }

    mutating func takeNotices() -> [Notice] {
        defer { notices = [] }
        return notices
    }

    func statistics(at now: HubTime) -> PushStatistics {
        var all = counts
        all.queued = queue.waiting
        all.inFlight = inFlight.count
        all.tokensMinted = dialect.credentialsMade
        all.keyEnvironment = environments.keyEnvironment(at: now.monotonic)
        all.providerTokenAge = dialect.credentialAge(at: now).map { Int($0 / 1000) }
        for (server, pool) in pools {
            if let reason = pool.circuit.reason { all.circuitsOpen["\(server)"] = reason }
        }
        return all
    }
}

extension Sender {
    /// Sends the notifications that may be sent to a server now.
    mutating func fill(_ server: ServerName, at now: HubTime) {
        while var pool = pools[server], queue.hasReady(for: server), !isStopping {
            if let reason = pool.circuit.reason, !rules.waitsWhenKeyIsRefused {
                return refuseAll(server, reason)
            }
            guard pool.maySend(at: now.monotonic) else { return }
            guard let connection = pool.place(rules.inFlight, limit: transport.limit) else {
                if pool.wantsConnection(rules.connections, at: now.monotonic), makeRoom(for: server) {
                    connect(server, at: now)
                }
                return
            }
            guard let authorization = authorization(for: server, at: now), let (ticket, entry) = queue.take(for: server)
            else { return }
            guard let request = dialect.request(for: entry.push, authorizedBy: authorization, at: now) else {
                queue.finish(ticket, .badToken(reason: "it cannot be written"))
                continue
            }
            guard transport.post(request, ticket, on: connection) else {
                queue.putBack(ticket, notBefore: nil, at: now)
                pools[server]?.links[connection]?.state = .retired
                continue
            }
            if pool.circuit.isOpen { pool.circuit.probed(at: now.monotonic) }
            if pool.links[connection]?.inFlight == 0 { pool.links[connection]?.answersDueSince = now.monotonic }
            pool.links[connection]?.inFlight += 1
            pools[server] = pool
            inFlight[ticket] = InFlightRequest(
                connection: connection, server: server, sent: now.monotonic, generation: authorization.generation)
            departures.append((ticket, now.monotonic))
        }
    }

    private mutating func connect(_ server: ServerName, at now: HubTime) {
        guard let connection = transport.open(to: server) else {
            return failToConnect(server, "the URL cannot be used", at: now)
        }
        servers[connection] = server
        pools[server]?.links[connection] = PooledConnection(at: now.monotonic)
    }

    /// Handles a connection that could not be opened, or ended without an answer.
    mutating func failToConnect(_ server: ServerName, _ why: String, at now: HubTime) {
        guard var pool = pools[server] else { return }
        pool.failures += 1
        pool.connectAfter = now.monotonic + PushBackoff.connecting.delay(after: pool.failures, using: &random)
        pools[server] = pool
        counts.connectionFailures += 1
        // Logged once, not with every attempt.
        guard pool.failures == 1 else { return }
        notices.append(
            Notice(
                level: .warning, text: "\(dialect.title(of: server)) cannot be reached: \(why). The hub keeps trying."))
    }

    private mutating func refuseAll(_ server: ServerName, _ reason: String) {
        while let (ticket, _) = queue.take(for: server) {
            queue.finish(ticket, .refused(status: 403, reason: reason))
        }
    }

    private mutating func authorization(for server: ServerName, at now: HubTime) -> PushAuthorization? {
        do {
            return try dialect.authorization(for: server, at: now)
        } catch {
            // libcrypto without memory or randomness: a later attempt may succeed.
            notices.append(Notice(level: .error, text: "Pushes cannot be authorized: \(error)"))
            return nil
        }
    }
}

/// A request without an answer yet.
struct InFlightRequest {
    let connection: PushTransport.Connection
    let server: ServerName
    /// The time when the request left, in monotonic milliseconds.
    let sent: Int64
    /// The `PushAuthorization.generation` that it was sent with.
    let generation: Int
}

/// A line for the log.
struct Notice: Equatable {
    let level: Logger.Level
    let text: String
}

/// The parts of a client's configuration that decisions depend on. Times are in milliseconds.
struct SenderRules {
    var queue: Int
    var connections: Int
    var mostConnections: Int
    var inFlight: Int
    var answerTimeout: Int64
    var pingTimeout: Int64
    var idlePing: Int64
    /// The longest time to fetch a credential, including the connection.
    var fetchTimeout: Int64
    var waitsWhenKeyIsRefused: Bool
    /// Whether each environment has a server of its own.
    var hasTwoHosts: Bool

    /// The number of requests in a row that may time out before a connection is retired.
    static let timeoutsToRetire = 2
    /// The number of times that a notification is sent again after it left and was not answered.
    static let resends = 5
    /// The number of times that a notification is sent again because of its provider token or its connection, before the key is to
    /// blame.
    static let rejections = 2
    /// The number of times that a notification may come back unseen before it waits a little.
    static let hastyReturns = 3
    /// The time that a notification with an unknown token waits for a connection to the other environment: behind a firewall that
    /// allows one host, it must not block the others of its user.
    static let detourPatience: Int64 = 30_000

    init(_ limits: PushLimits, hasTwoHosts: Bool) {
        queue = max(1, limits.queue)
        connections = max(1, limits.connections)
        mostConnections = limits.mostConnections
        inFlight = max(1, limits.inFlight)
        answerTimeout = limits.answerTimeout.milliseconds
        pingTimeout = limits.pingTimeout.milliseconds
        idlePing = limits.idlePing.milliseconds
        fetchTimeout = (limits.connectTimeout + limits.answerTimeout).milliseconds
        waitsWhenKeyIsRefused = limits.waitsWhenKeyIsRefused
        self.hasTwoHosts = hasTwoHosts
    }

    /// The time that a connection may be silent before it is pinged, while answers are due.
    var silence: Int64 { answerTimeout / 2 }
}
