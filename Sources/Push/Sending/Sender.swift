import DequeModule
import Hub

/// Decides what is sent when, on which connection, and what becomes of it. Has no clock and no socket of its own.
///
/// Invariants
///   - Each notification that is added has exactly one outcome.
///   - A request is on its way on one connection only; what comes in about it from another is not listened to.
///   - What left and was not answered goes again only where the notification allows it.
struct Sender<Transport: PushTransport> {
    let rules: SenderRules
    let key: ProviderKey
    let transport: Transport
    var queue: SendQueue
    var keeper: ProviderTokenKeeper
    var pools: [ServerName: Pool] = [:]
    var servers: [PushTransport.Connection: ServerName] = [:]
    var flights: [SendQueue.Ticket: Flight] = [:]
    /// By the time they left; those that are back are skipped.
    var departures: Deque<(ticket: SendQueue.Ticket, sent: Int64)> = []
    var counts = PushStatistics()
    var notices: [Notice] = []
    var random: any RandomNumberGenerator
    private(set) var isStopping = false

    init(
        _ rules: SenderRules, key: ProviderKey, over transport: Transport,
        random: any RandomNumberGenerator = SystemRandomNumberGenerator()
    ) {
        self.rules = rules
        self.key = key
        self.transport = transport
        self.random = random
        queue = SendQueue(capacity: rules.queue)
        keeper = ProviderTokenKeeper(key)
    }

    mutating func add(_ push: Push, at now: HubTime) {
        queue.add(push, at: now)
        let server = ServerName(push.target)
        if pools[server] == nil { pools[server] = Pool() }
    }

    /// Does what is due: to be called after whatever was added or happened, and at `nextDue`.
    mutating func advance(to now: HubTime) {
        queue.advance(to: now)
        endSilentFlights(at: now)
        for server in pools.keys {
            keepAlive(server, at: now)
            fill(server, at: now)
        }
        if isStopping { queue.finishWaiting(.stopped) }
    }

    /// From here on nothing leaves. What waits ends at once, what left when it is answered, or with `abandon`.
    mutating func stop() {
        isStopping = true
        queue.finishWaiting(.stopped)
    }

    mutating func abandon() {
        for (ticket, flight) in flights {
            let hasLeft = transport.cancel(ticket, on: flight.connection) ?? true
            queue.finish(ticket, hasLeft ? .unanswered : .stopped)
        }
        flights = [:]
    }

    mutating func takeFinished() -> [(Push, PushOutcome)] {
        let finished = queue.takeFinished()
        for (_, outcome) in finished { counts.count(outcome) }
        return finished
    }

    mutating func takeNotices() -> [Notice] {
        defer { notices = [] }
        return notices
    }

    func statistics(at now: HubTime) -> PushStatistics {
        var all = counts
        all.queued = queue.waiting
        all.inFlight = flights.count
        all.tokensMinted = keeper.minted
        all.providerTokenAge = keeper.age(at: now).map { Int($0 / 1000) }
        for (server, pool) in pools {
            if let reason = pool.circuit.reason { all.circuitsOpen["\(server)"] = reason }
        }
        return all
    }
}
