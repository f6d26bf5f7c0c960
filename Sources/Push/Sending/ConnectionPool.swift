/// The connections to one server, and when it is left alone.
struct Pool {
    var links: [PushTransport.Connection: Link] = [:]
    var circuit = CircuitBreaker()
    /// Connections in a row that came to nothing.
    var failures = 0
    /// No new connection before that, in monotonic milliseconds.
    var connectAfter: Int64 = 0
    /// Answers in a row that said the server is busy.
    var busy = 0
    /// Nothing is sent before that, in monotonic milliseconds.
    var pausedUntil: Int64 = 0

    /// One busy answer concerns one notification; that many in a row concern the server.
    static let busyLimit = 3

    var inFlight: Int { links.values.reduce(0) { $0 + $1.inFlight } }

    /// The server answered, and is neither busy nor against us.
    mutating func isWell() {
        busy = 0
        failures = 0
    }

    /// - Returns: true where the whole server is to be left alone for a while. Answers to what was sent before a pause
    ///   began say nothing new.
    mutating func isBusy(atLeast least: Int = 1, at now: Int64) -> Bool {
        failures = 0
        guard now >= pausedUntil else { return false }
        busy = max(busy + 1, least)
        return busy >= Self.busyLimit
    }

    /// An open connection with a place for one more request.
    /// - Parameter most: at a time on one connection, where the peer allows as many.
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

    /// Whether a further connection is wanted, where none has a place.
    func wantsConnection(_ most: Int, at now: Int64) -> Bool {
        guard now >= connectAfter, !links.values.contains(where: { $0.state == .connecting }) else { return false }
        if links.values.contains(where: { $0.state == .open && !$0.hasAnswered }) { return false }
        if circuit.isOpen || busy >= Self.busyLimit { return !links.values.contains { $0.state == .open } }
        return links.values.count { $0.state == .open } < most
    }

    func maySend(at now: Int64) -> Bool { now >= pausedUntil && circuit.allows(at: now) }
}
