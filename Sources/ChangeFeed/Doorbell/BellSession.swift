/// Session B: waits in the queue of the hub's advisory lock and holds it while the hub sleeps.
final class BellSession {
    enum Event { case granted, refused, released }

    private enum Question { case lock, unlock }

    /// The first key of every advisory lock of roost's ("roos" in ASCII); the second is the hub's doorbell, or 0 for
    /// migrations. The triggers in SQL/ name it too.
    static let lockClass = "1919905651"

    private let connection: PostgresConnection
    private let doorbell: String
    private var pending: Question?
    private var answerDue: ContinuousClock.Instant?
    private var events: [Event] = []

    init(_ connection: PostgresConnection, doorbell: String) {
        self.connection = connection
        self.doorbell = doorbell
    }

    var descriptor: Int32 { connection.descriptor }
    var backendID: Int32 { connection.backendID }

    /// The answer may take as long as writers' transactions do.
    func requestLock() throws {
        try connection.send("select pg_advisory_lock($1::int4, $2::int4)", [Self.lockClass, doorbell])
        pending = .lock
    }

    func releaseLock() throws {
        try connection.send("select pg_advisory_unlock($1::int4, $2::int4)", [Self.lockClass, doorbell])
        pending = .unlock
        answerDue = .now + .seconds(10)
    }

    /// Reads what arrived on this session's socket, unless it is the one somebody else is waiting for.
    func collect(beside descriptor: Int32) throws {
        if descriptor != self.descriptor { try collect() }
    }

    func takeEvents() throws -> [Event] {
        try collect()
        defer { events = [] }
        return events
    }

    /// - Throws: `PostgresError` where the lock should long be released; writers would ring for ever.
    func demandAnswer() throws {
        guard let answerDue, ContinuousClock.now > answerDue else { return }
        throw PostgresError(.timeout, "Postgres did not release the doorbell's lock in time.")
    }

    /// Asks whether the session still lives, and with it the lock: without the lock nobody rings.
    func check(within limit: Duration) throws {
        guard pending == nil else { return }
        _ = try connection.query("select 1", within: limit)
    }

    private func collect() throws {
        guard let question = pending else {
            // Nothing is expected, but a closed connection shows only when it is read.
            _ = try connection.takeNotifications()
            return
        }
        guard let answer = try connection.takeResult() else { return }
        pending = nil
        answerDue = nil
        switch (question, answer.error) {
        case (.lock, nil): events.append(.granted)
        case (.unlock, nil): events.append(.released)
        case (_, let error?) where error.kind != .server: throw error
        case (.lock, _): events.append(.refused)
        // A cancellation that came late hit this statement instead.
        case (.unlock, _): try releaseLock()
        }
    }
}
