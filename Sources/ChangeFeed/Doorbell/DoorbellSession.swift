import Postgres

/// Session B: waits in the queue of the hub's advisory lock, and holds the lock while the hub sleeps.
package final class DoorbellSession {
    enum Event { case granted, refused, released }

    private enum Question { case lock, unlock }

    /// The first key of each of Roost's advisory locks ("roos" in ASCII); the second is the hub's doorbell, or 0 for
    /// migrations. The triggers in SQL/ use it too.
    package static let lockClass = "1919905651"

    private let connection: PostgresConnection
    private let doorbell: String
    private var pending: Question?
    /// Deadline for a question that Postgres answers at once.
    private var answerDue: ContinuousClock.Instant?
    /// When to check through another session whether the lock has in fact been granted.
    private var suspicionDue: ContinuousClock.Instant?
    private var events: [Event] = []
    private static let patience = Duration.seconds(4)

    init(_ connection: PostgresConnection, doorbell: String) {
        self.connection = connection
        self.doorbell = doorbell
    }

    var descriptor: Int32 { connection.descriptor }
    var backendID: Int32 { connection.backendID }

    /// The answer may take as long as writers' transactions do.
    func requestLock() throws {
        try connection.sendQuery("select pg_advisory_lock($1::int4, $2::int4)", [Self.lockClass, doorbell])
        pending = .lock
        suspicionDue = .now + Self.patience
    }

    /// Ends the wait for the lock.
    ///
    /// - Parameter reader: another session; this one cannot end its own wait.
    func cancelRequest(through reader: PostgresConnection) throws {
        _ = try reader.query("select pg_cancel_backend($1)", [String(backendID)], within: Self.patience)
        if pending == .lock { answerDue = .now + Self.patience }
    }

    func releaseLock() throws {
        try connection.sendQuery("select pg_advisory_unlock($1::int4, $2::int4)", [Self.lockClass, doorbell])
        pending = .unlock
        answerDue = .now + Self.patience
    }

    /// Reads what arrived on this session's socket, unless another caller is waiting on it.
    func collectAnswers(beside descriptor: Int32) throws {
        if descriptor != self.descriptor { try collectAnswers() }
    }

    func takeEvents() throws -> [Event] {
        try collectAnswers()
        defer { events = [] }
        return events
    }

    /// Detects a session that hangs while waiting for the lock. The wait has no deadline, because writers' transactions
    /// have none; so another session checks whether Postgres has granted the lock without an answer arriving.
    ///
    /// - Throws: `PostgresError` if the session hangs: writers would ring for ever.
    func demandAnswer(asking reader: PostgresConnection) throws {
        let now = ContinuousClock.now
        if let answerDue, now > answerDue {
            throw PostgresError(.timeout, "Postgres did not answer the doorbell's session in time.")
        }
        guard pending == .lock, answerDue == nil, let suspicionDue, now > suspicionDue else { return }
        let isGranted = try reader.query(FeedSQL.doorbellGranted, [String(backendID)], within: Self.patience).flag(0, 0)
        self.suspicionDue = now + Self.patience
        if isGranted { answerDue = now + Self.patience }
    }

    /// When `demandAnswer` has something to check.
    var nextDemand: ContinuousClock.Instant? { pending == .lock ? answerDue ?? suspicionDue : answerDue }

    /// Checks that a sleeping hub's two sessions are alive: without this one no writer rings, and without the reader no
    /// ring arrives. A failed wait breaks its session.
    func checkSessions(beside reader: PostgresConnection) throws {
        let deadline = ContinuousClock.now + Self.patience
        if pending == nil { _ = try connection.query("select 1", within: deadline - .now) }
        _ = try reader.query("select 1", within: deadline - .now)
    }

    private func collectAnswers() throws {
        guard let question = pending else {
            // Nothing is expected, but a closed connection is noticed only by reading.
            _ = try connection.takeNotifications()
            return
        }
        guard let answer = try connection.takeResult() else { return }
        pending = nil
        answerDue = nil
        suspicionDue = nil
        switch (question, answer.error) {
        case (.lock, nil): events.append(.granted)
        case (.unlock, nil): events.append(.released)
        case (_, let error?) where error.kind != .server: throw error
        case (.lock, _): events.append(.refused)
        // A late cancellation hit this statement instead.
        case (.unlock, _): try releaseLock()
        }
    }
}

/// Carries out the decisions of a feed's `Doorbell` on its two sessions. One for each connection of the feed, on its
/// thread.
final class DoorbellController {
    private var doorbell: Doorbell
    private let reader: PostgresConnection
    let session: DoorbellSession

    /// - Parameter reader: session A, which listens.
    init(_ doorbell: Doorbell, reader: PostgresConnection, session: DoorbellSession) {
        self.doorbell = doorbell
        self.reader = reader
        self.session = session
    }

    /// When the next poll is due.
    var pollAt: ContinuousClock.Instant { doorbell.pollAt }
    var missedRings: Int { doorbell.missedRings }
    /// When the doorbell's session must be checked, even if nothing arrives.
    var dueAt: ContinuousClock.Instant? { session.nextDemand }

    /// Processes the answers to the doorbell's session.
    func serveEvents() throws {
        for event in try session.takeEvents() {
            switch event {
            case .granted: try executeAction(doorbell.lockGranted(at: .now))
            case .refused: doorbell.lockRefused(at: .now)
            case .released: doorbell.lockReleased()
            }
        }
        try session.demandAnswer(asking: reader)
    }

    /// Processes notifications that have arrived on session A.
    ///
    /// - Returns: the number of notifications.
    func takeRings() throws -> Int {
        let rings = try reader.takeNotifications()
        for _ in 0..<rings { try executeAction(doorbell.ringArrived(at: .now)) }
        return rings
    }

    /// A poll is about to take its snapshot.
    func pollBegins() throws {
        if doorbell.mode == .asleep { try session.checkSessions(beside: reader) }
        doorbell.pollBegan()
    }

    /// - Returns: true if the hub has just fallen asleep.
    func pollEnded(rows: Int) throws -> Bool {
        let wasDozing = doorbell.mode == .dozing
        try executeAction(doorbell.pollEnded(rows: rows, at: .now))
        return wasDozing && doorbell.mode == .asleep
    }

    private func executeAction(_ action: Doorbell.Action?) throws {
        switch action {
        case nil: break
        case .requestLock: try session.requestLock()
        case .releaseLock: try session.releaseLock()
        case .cancelRequest: try session.cancelRequest(through: reader)
        }
    }
}
