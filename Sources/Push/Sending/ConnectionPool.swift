/// The connections to one server, and when it is left alone.
struct ConnectionPool {
    var links: [PushTransport.Connection: PooledConnection] = [:]
    var circuit = CircuitBreaker()
    /// How many connections in a row could not be opened, or ended without an answer.
    var failures = 0
    /// When a new connection may be opened, in monotonic milliseconds.
    var connectAfter: Int64 = 0
    /// How many answers in a row said that the server is busy.
    var busy = 0
    /// When something may be sent again, in monotonic milliseconds.
    var pausedUntil: Int64 = 0
    /// Whether a connection has ever been open.
    var wasReached = false
    /// Notifications for a server of strangers' choice that have no outcome yet.
    var held = 0

    /// One busy answer concerns one notification; that many in a row concern the server.
    static let busyLimit = 3

    var inFlight: Int { links.values.reduce(0) { $0 + $1.inFlight } }

    /// The server answered, and is neither busy nor refuses the key.
    mutating func isWell() {
        busy = 0
        failures = 0
    }

    /// Counts an answer that said the server is busy. Answers to what was sent before a pause began say nothing new.
    ///
    /// - Returns: whether the whole server is to be left alone for a while.
    mutating func isBusy(atLeast least: Int = 1, at now: Int64) -> Bool {
        failures = 0
        guard now >= pausedUntil else { return false }
        busy = max(busy + 1, least)
        return busy >= Self.busyLimit
    }

    /// An open connection with a place for one more request.
    ///
    /// - Parameter most: how many requests one connection has at a time, where the peer allows as many.
    func place(_ most: Int, limit: (PushTransport.Connection) -> Int) -> PushTransport.Connection? {
        // After a pause, as after a refusal, one finds out for all.
        if (circuit.isOpen || busy >= Self.busyLimit) && inFlight > 0 { return nil }
        for (connection, link) in links where link.state == .open {
            if link.inFlight < (link.hasAnswered ? min(most, limit(connection)) : min(1, limit(connection))) {
                return connection
            }
        }
        return nil
    }

    /// Whether a further connection is wanted, where none has a place. There are never more than `most`.
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
        /// The connection takes nothing new, and ends with its last request.
        case retired
    }

    var state = State.connecting
    var inFlight = 0
    /// With a provider token APNs wants one request at a time until the first is answered, whatever its settings say.
    var hasAnswered = false
    /// How many requests have timed out since the last answer.
    var timeouts = 0
    /// When something came from the peer last, in monotonic milliseconds.
    var heard: Int64
    /// Since when answers are due, in monotonic milliseconds.
    var answersDueSince: Int64 = 0
    /// When a ping was sent that was not answered yet.
    var pinged: Int64?

    init(at now: Int64) { heard = now }

    mutating func hear(at now: Int64) {
        heard = now
        pinged = nil
    }
}

/// Stops what cannot succeed before the operator does something, and finds out by itself when that is done: while it is
/// open, one push a minute is tried.
struct CircuitBreaker: Sendable {
    /// In milliseconds.
    static let probeInterval: Int64 = 60_000

    /// Why it is open; nil where it is closed.
    private(set) var reason: String?
    private var nextProbe: Int64 = 0

    var isOpen: Bool { reason != nil }

    /// Opens the breaker.
    ///
    /// - Returns: whether the operator is to be told, because it was closed or the reason is another one.
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

    /// A push is sent although it is open.
    mutating func probed(at now: Int64) { nextProbe = now + Self.probeInterval }

    var nextDue: Int64? { reason == nil ? nil : nextProbe }
}

/// How long to wait before the next attempt: twice as long each time, up to a ceiling, spread at random so that many
/// who wait do not come back at once.
struct PushBackoff: Sendable {
    /// The limits of the first wait and of the longest, in milliseconds.
    let first: Int64
    let ceiling: Int64
    /// Whether the wait is at least half of the limit; otherwise it may be none at all.
    let isAtLeastHalf: Bool

    /// Between attempts to connect, with full jitter.
    static let connecting = PushBackoff(first: 1000, ceiling: 15_000, isAtLeastHalf: false)
    /// Between attempts to send a notification; for a busy server Apple advises 15 minutes.
    static let sending = PushBackoff(first: 1000, ceiling: 900_000, isAtLeastHalf: true)

    /// - Parameter attempt: how many attempts have failed, from 1.
    /// - Returns: milliseconds.
    func delay(after attempt: Int, using random: inout some RandomNumberGenerator) -> Int64 {
        let limit = min(ceiling, first << Int64(min(max(attempt, 1) - 1, 20)))
        return Int64.random(in: (isAtLeastHalf ? limit / 2 : 0)...limit, using: &random)
    }
}
