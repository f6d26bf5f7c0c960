/// The connections to one server, and the pauses in which it is left alone.
struct ConnectionPool {
    var links: [PushTransport.Connection: PooledConnection] = [:]
    var circuit = CircuitBreaker()
    /// The number of connections in a row that could not be opened, or ended without an answer.
    var failures = 0
    /// The time when a new connection may be opened, in monotonic milliseconds.
    var connectAfter: Int64 = 0
    /// The number of answers in a row that reported a busy server.
    var busy = 0
    /// The time when sending may resume, in monotonic milliseconds.
    var pausedUntil: Int64 = 0
    /// Whether a connection to the server has ever been open.
    var wasReached = false
    /// Notifications without an outcome yet, for a server named by a registering client.
    var held = 0

    /// One busy answer concerns one notification; this many in a row concern the server.
    static let busyLimit = 3

    var inFlight: Int { links.values.reduce(0) { $0 + $1.inFlight } }

    /// Notes that the server answered, is not busy and does not refuse the key.
    mutating func isWell() {
        busy = 0
        failures = 0
    }

    /// Counts an answer that reported a busy server. Answers to requests sent before a pause began add nothing new.
    ///
    /// - Returns: whether to leave the whole server alone for a while.
    mutating func isBusy(atLeast least: Int = 1, at now: Int64) -> Bool {
        failures = 0
        guard now >= pausedUntil else { return false }
        busy = max(busy + 1, least)
        return busy >= Self.busyLimit
    }

    /// Returns an open connection with a place for one more request.
    ///
    /// - Parameter most: the number of concurrent requests on one connection, if the peer allows as many.
    func place(_ most: Int, limit: (PushTransport.Connection) -> Int) -> PushTransport.Connection? {
        // After a pause, as after a refusal, one request finds out for all.
        if (circuit.isOpen || busy >= Self.busyLimit) && inFlight > 0 { return nil }
        for (connection, link) in links where link.state == .open {
            if link.inFlight < (link.hasAnswered ? min(most, limit(connection)) : min(1, limit(connection))) {
                return connection
            }
        }
        return nil
    }

    /// Whether another connection is wanted because none has a place. There are never more than `most`.
    func wantsConnection(_ most: Int, at now: Int64) -> Bool {
        guard now >= connectAfter, !links.values.contains(where: { $0.state == .connecting }) else { return false }
        if links.values.contains(where: { $0.state == .open && !$0.hasAnswered }) { return false }
        if circuit.isOpen || busy >= Self.busyLimit { return !links.values.contains { $0.state == .open } }
        return links.values.count { $0.state == .open } < most
    }

    func maySend(at now: Int64) -> Bool { now >= pausedUntil && circuit.allows(at: now) }
}

/// The state of one connection, as far as decisions depend on it.
struct PooledConnection {
    enum State {
        case connecting
        case open
        /// The connection accepts nothing new, and ends with its last request.
        case retired
    }

    var state = State.connecting
    var inFlight = 0
    /// With a provider token, APNs allows one request at a time until the first is answered, whatever its settings say.
    var hasAnswered = false
    /// The number of requests that have timed out since the last answer.
    var timeouts = 0
    /// The time when something last arrived from the peer, in monotonic milliseconds.
    var heard: Int64
    /// The time since which answers are due, in monotonic milliseconds.
    var answersDueSince: Int64 = 0
    /// The time of a ping that is not answered yet.
    var pinged: Int64?

    init(at now: Int64) { heard = now }

    mutating func hear(at now: Int64) {
        heard = now
        pinged = nil
    }
}

/// Stops attempts that cannot succeed before the operator acts, and notices by itself when the problem is solved: while it is open, one
/// push a minute is tried.
struct CircuitBreaker: Sendable {
    /// In milliseconds.
    static let probeInterval: Int64 = 60_000

    /// The reason why it is open; nil if it is closed.
    private(set) var reason: String?
    private var nextProbe: Int64 = 0

    var isOpen: Bool { reason != nil }

    /// Opens the breaker.
    ///
    /// - Returns: whether to tell the operator, because it was closed or the reason is a new one.
    mutating func fail(_ reason: String, at now: Int64) -> Bool {
        guard reason != self.reason else { return false }
        self.reason = reason
        nextProbe = now + Self.probeInterval
        return true
    }

    /// Closes the breaker.
    ///
    /// - Returns: whether it was open.
    mutating func succeed() -> Bool {
        defer { reason = nil }
        return reason != nil
    }

    func allows(at now: Int64) -> Bool { reason == nil || now >= nextProbe }

    /// Notes that a push is sent although the breaker is open.
    mutating func probed(at now: Int64) { nextProbe = now + Self.probeInterval }

    var nextDue: Int64? { reason == nil ? nil : nextProbe }
}

/// The wait before the next attempt: doubled each time, up to a ceiling, and randomized so that many waiting clients do not come back
/// at once.
struct PushBackoff: Sendable {
    /// The limits of the first wait and of the longest, in milliseconds.
    let first: Int64
    let ceiling: Int64
    /// Whether the wait is at least half of the limit; otherwise it may be zero.
    let isAtLeastHalf: Bool

    /// Between attempts to connect, with full jitter.
    static let connecting = PushBackoff(first: 1000, ceiling: 15_000, isAtLeastHalf: false)
    /// Between attempts to send a notification; for a busy server Apple advises 15 minutes.
    static let sending = PushBackoff(first: 1000, ceiling: 900_000, isAtLeastHalf: true)

    /// - Parameter attempt: the number of failed attempts, from 1.
    /// - Returns: milliseconds.
    func delay(after attempt: Int, using random: inout some RandomNumberGenerator) -> Int64 {
        let limit = min(ceiling, first << Int64(min(max(attempt, 1) - 1, 20)))
        return Int64.random(in: (isAtLeastHalf ? limit / 2 : 0)...limit, using: &random)
    }
}
