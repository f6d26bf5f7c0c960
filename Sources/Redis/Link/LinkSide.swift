import DequeModule

/// One of the two connections of a link, made again whenever it ends: before every attempt, Sentinel is asked for the
/// primary; failures are retried after a pause. Confined to one thread.
final class LinkSide {
    typealias Instant = ContinuousClock.Instant

    enum Event {
        /// Carries the replies to the greeting's own commands.
        case ready([RedisValue])
        case reply(LinkQuestion, RedisValue)
        case message(channel: [UInt8], [UInt8])
        /// The connection ended or was not made; carries the unanswered requests. The next attempt follows automatically.
        case failed(RedisFailure, unanswered: [LinkQuestion])
    }

    private enum Step {
        case waiting(Instant)
        case asking(RedisConnection)
        case connected(RedisConnection)
    }

    private let address: RedisAddress
    private let greeting: RedisGreeting
    private let timeouts: RedisTimeouts
    private let lookup: HostLookup
    private let random: () -> Double
    private var step: Step
    private var pause: RetryPause
    /// Requests on the connection without a reply yet, in order.
    private(set) var questions: Deque<LinkQuestion> = []
    /// The Sentinel that answered last, which is asked first.
    private var sentinel = 0
    private var silentSentinels = 0
    /// The server of the current connection or attempt, and since when.
    private(set) var place: (RedisAddress.Place, since: Instant)?
    private(set) var readyAt: Instant?
    /// Whether the connection is known to answer: it is new, or has answered since it was last doubted.
    private(set) var isProven = false

    init(
        _ address: RedisAddress, _ greeting: RedisGreeting, _ timeouts: RedisTimeouts, _ lookup: HostLookup,
        random: @escaping () -> Double, at now: Instant
    ) {
        self.address = address
        var greeting = greeting
        greeting.credentials = address.credentials
        greeting.database = address.database
        if case .sentinel = address.place { greeting.wantsPrimary = true }
        self.greeting = greeting
        self.timeouts = timeouts
        self.lookup = lookup
        self.random = random
        pause = RetryPause(timeouts)
        step = .waiting(now)
    }

    /// The connection to poll, if any.
    var connection: RedisConnection? {
        switch step {
        case .waiting: nil
        case .asking(let connection), .connected(let connection): connection
        }
    }

    var isReady: Bool { readyAt != nil }

    var server: RedisServerIdentity {
        if case .connected(let connection) = step { connection.server } else { RedisServerIdentity() }
    }

    var deadline: Instant? { if case .waiting(let until) = step { until } else { connection?.deadline } }

    /// - Returns: false if the command cannot be sent now.
    func sendCommand(_ command: [RedisArgument], _ question: LinkQuestion, at now: Instant) -> Bool {
        guard isReady, case .connected(let connection) = step, connection.sendCommand(command, at: now) else {
            return false
        }
        questions.append(question)
        return true
    }

    /// Discards the replies to earlier requests, and tests whether the connection still answers.
    ///
    /// - Returns: the unanswered requests.
    func probeConnection(at now: Instant) -> [LinkQuestion] {
        let unanswered = Array(questions)
        for index in questions.indices { questions[index] = .nobody }
        isProven = false
        if isReady, !sendCommand(["PING"], .proof, at: now) {
            dropConnection(RedisFailure(.silent, "Redis leaves too much unanswered"), at: now)
        }
        return unanswered
    }

    /// Gives the connection up; the next attempt follows.
    func dropConnection(_ failure: RedisFailure, at now: Instant) {
        readyAt = nil
        isProven = false
        questions = []
        step = .waiting(pause.attemptFailed(at: now, random: random()))
    }

    func makeProgress(at now: Instant, into events: inout [Event]) {
        if case .waiting(let until) = step {
            guard now >= until else { return }
            silentSentinels = 0
            startAttempt(at: now)
        }
        guard let connection else { return }
        var news: [RedisConnection.Event] = []
        connection.makeProgress(at: now, into: &news)
        for event in news {
            // Anything a Sentinel says after its answer is irrelevant.
            guard connection === self.connection else { break }
            if case .asking = step {
                handleSentinelEvent(event, at: now, into: &events)
            } else {
                handleEvent(event, at: now, into: &events)
            }
        }
    }

    private func handleEvent(_ event: RedisConnection.Event, at now: Instant, into events: inout [Event]) {
        switch event {
        case .ready(let replies):
            readyAt = now
            isProven = true
            pause.connectionOpened(at: now)
            events.append(.ready(replies))
        case .reply(let value):
            guard let question = questions.popFirst() else { return }
            if case .proof = question { isProven = true }
            events.append(.reply(question, value))
        case .message(let channel, let message): events.append(.message(channel: channel, message))
        case .ended(let failure):
            events.append(.failed(failure, unanswered: Array(questions)))
            dropConnection(failure, at: now)
        }
    }

    // MARK: Sentinel

    private func startAttempt(at now: Instant) {
        guard case .sentinel(let endpoints, let name) = address.place else {
            return connect(to: address.place, at: now)
        }
        var question = RedisGreeting(name: greeting.name)
        question.credentials = address.sentinelCredentials
        question.asksIdentity = false
        question.own = [["SENTINEL", "GET-MASTER-ADDR-BY-NAME", .text(name)]]
        step = .asking(
            RedisConnection(
                to: .tcp(endpoints[sentinel % endpoints.count]), encryption: address.encryption, greeting: question,
                timeouts: timeouts, lookup: lookup, at: now))
    }

    private func connect(to place: RedisAddress.Place, at now: Instant) {
        self.place = (place, since: now)
        step = .connected(
            RedisConnection(
                to: place, encryption: address.encryption, greeting: greeting, timeouts: timeouts, lookup: lookup,
                at: now))
    }

    /// Handles an event of the connection with a Sentinel.
    private func handleSentinelEvent(_ event: RedisConnection.Event, at now: Instant, into events: inout [Event]) {
        guard case .sentinel(let endpoints, let name) = address.place else { return }
        let failure: RedisFailure
        switch event {
        case .ready(let replies):
            if let named = replies.first.flatMap(RedisAddress.Endpoint.init(sentinel:)) {
                return connect(to: .tcp(named), at: now)
            }
            failure = RedisFailure(.sentinel, "it knows no primary of the name \(name)")
        case .ended(let ended): failure = ended
        case .reply, .message: return
        }
        sentinel = (sentinel + 1) % endpoints.count
        silentSentinels += 1
        if silentSentinels < endpoints.count { return startAttempt(at: now) }
        let told = RedisFailure(.sentinel, "no Sentinel names the primary; of the last one: \(failure)")
        dropConnection(told, at: now)
        events.append(.failed(told, unanswered: []))
    }
}
