import Postgres

/// Session B: waits in the queue of the hub's advisory lock and holds it while the hub sleeps.
final class DoorbellSession {
    enum Event { case granted, refused, released }

    private enum Question { case lock, unlock }

    /// The first key of every advisory lock of roost's ("roos" in ASCII); the second is the hub's doorbell, or 0 for
    /// migrations. The triggers in SQL/ name it too.
    static let lockClass = "1919905651"

    private let connection: PostgresConnection
    private let doorbell: String
    private var pending: Question?
    /// When a question that Postgres answers at once must have its answer.
    private var answerDue: ContinuousClock.Instant?
    /// When to ask beside this session whether the lock was granted after all.
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
        try connection.send("select pg_advisory_lock($1::int4, $2::int4)", [Self.lockClass, doorbell])
        pending = .lock
        suspicionDue = .now + Self.patience
    }

    /// Ends the waiting for the lock.
    ///
    /// - Parameter reader: another session, which this one cannot end its own waiting from.
    func cancelRequest(through reader: PostgresConnection) throws {
        _ = try reader.query("select pg_cancel_backend($1)", [String(backendID)], within: Self.patience)
        if pending == .lock { answerDue = .now + Self.patience }
    }

    func releaseLock() throws {
        try connection.send("select pg_advisory_unlock($1::int4, $2::int4)", [Self.lockClass, doorbell])
        pending = .unlock
        answerDue = .now + Self.patience
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

    /// Waiting for the lock has no deadline, as writers' transactions have none; so a session that hangs then is told
    /// by another one: Postgres has granted the lock, and no answer comes.
    ///
    /// - Throws: `PostgresError` where the session hangs. Writers would ring for ever.
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

    /// When `demandAnswer` has something to look at.
    var nextDemand: ContinuousClock.Instant? { pending == .lock ? answerDue ?? suspicionDue : answerDue }

    /// Asks a sleeping hub's two sessions whether they still live: without this one nobody rings, without the reader
    /// nobody hears it. A wait that fails breaks the session that it waited for.
    func check(beside reader: PostgresConnection) throws {
        let deadline = ContinuousClock.now + Self.patience
        if pending == nil { _ = try connection.query("select 1", within: deadline - .now) }
        _ = try reader.query("select 1", within: deadline - .now)
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
        suspicionDue = nil
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

/// Carries out on a feed's two sessions what its `Doorbell` decides. One for each connection of the feed, on its thread.
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
    /// When the doorbell's session wants to be looked at, whatever arrives.
    var dueAt: ContinuousClock.Instant? { session.nextDemand }

    /// Takes in what the doorbell's session was answered.
    func serve() throws {
        for event in try session.takeEvents() {
            switch event {
            case .granted: try perform(doorbell.lockGranted(at: .now))
            case .refused: doorbell.lockRefused(at: .now)
            case .released: doorbell.lockReleased()
            }
        }
        try session.demandAnswer(asking: reader)
    }

    /// Takes in notifications that have arrived on session A.
    ///
    /// - Returns: how many.
    func takeRings() throws -> Int {
        let rings = try reader.takeNotifications()
        for _ in 0..<rings { try perform(doorbell.rang(at: .now)) }
        return rings
    }

    /// A poll is about to take its snapshot.
    func pollBegins() throws {
        if doorbell.mode == .asleep { try session.check(beside: reader) }
        doorbell.pollBegan()
    }

    /// - Returns: whether the hub has fallen asleep by it.
    func pollEnded(rows: Int) throws -> Bool {
        let wasDozing = doorbell.mode == .dozing
        try perform(doorbell.pollEnded(rows: rows, at: .now))
        return wasDozing && doorbell.mode == .asleep
    }

    private func perform(_ action: Doorbell.Action?) throws {
        switch action {
        case nil: break
        case .requestLock: try session.requestLock()
        case .releaseLock: try session.releaseLock()
        case .cancelRequest: try session.cancelRequest(through: reader)
        }
    }
}
