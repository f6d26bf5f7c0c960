import ChangeFeed
import Gateway
import Glibc
import Hub
import Logging
import Push

/// The life of the desk's thread. Confined to it.
final class DeskLoop {
    let setup: DeskSetup
    let mailbox: DeskMailbox
    let client: PushClient
    private let published: DeskPublished
    private(set) var rules: PushRules
    var store: PushStore?
    var book: ActivityBook
    /// The channel of each activity's conversation, and the activities of each channel that is watched.
    var topics: [String: String] = [:]
    var activitiesByTopic: [String: Set<String>] = [:]
    /// When it was asked last how the conversation of an activity stands, in monotonic milliseconds.
    var askedAt: [String: Int64] = [:]
    /// Messages that Postgres has not been asked about, with the hub's time at which they came.
    var messages: [RowChange] = []
    var errands: [PushID: Errand] = [:]
    /// Users with alerts on their way, and how many.
    var busy: [String: Int] = [:]
    /// Tokens that Apple does not know: nothing is sent to them until they are registered again.
    var badTokens: Set<PushToken> = []
    /// Users whom an alert waits for: in a grace window here, or at another hub.
    var waitedFor: Set<String> = []
    var settlements: [AlertSettlement] = []
    /// Alerts that never left, and are to be sent another time.
    var returned: [AlertSettlement] = []
    /// The timestamps of states that Apple took, by activity.
    var delivered: [String: Int64] = [:]
    var alertsDue: Int64?
    var statistics = DeskStatistics()
    /// Until when the phones of these activities, which the hub's last process had, count as there; in monotonic
    /// milliseconds.
    let restartUntil: Int64
    private(set) var fromBefore: Set<String> = []
    private var backoff = Backoff()
    private var retryAt: ContinuousClock.Instant?
    private var isAway = false
    private var wasConnected = false
    private var nextLook: Int64 = 0
    private var nextSign: Int64 = 0
    private var nextRound: Int64 = 0
    private var nextPrune: Int64

    private static let lookInterval: Int64 = 1000
    private static let signInterval: Int64 = 5000
    private static let roundInterval: Int64 = 30_000
    private static let pruneInterval: Int64 = 600_000

    init(_ setup: DeskSetup, _ mailbox: DeskMailbox, _ client: PushClient, _ published: DeskPublished) {
        self.setup = setup
        self.mailbox = mailbox
        self.client = client
        self.published = published
        rules = setup.rules
        book = ActivityBook(setup.rules.activity)
        let now = setup.clock().monotonic
        restartUntil = now + setup.rules.restartWindow
        nextPrune = now + Self.pruneInterval
    }

    var now: HubTime { setup.clock() }
    var logger: Logger { setup.logger }

    func run() {
        while mailbox.deadline == nil {
            turn()
            rest()
        }
        // What came in before the end, outcomes above all.
        turn()
        published.publish(statistics)
        published.noteEnd()
    }

    private func turn() {
        if store == nil, retryAt.map({ $0 <= .now }) ?? true { connect() }
        if let next = mailbox.takeRules() {
            rules = rules.reloaded(as: next)
            book.adopt(rules.activity)
        }
        for task in mailbox.takeAll() {
            switch task {
            case .messages(let changes): messages += changes
            case .call(let call, let reply): reply.send(answer(call))
            case .outcomes(let outcomes): for (push, outcome) in outcomes { note(outcome, of: push) }
            }
        }
        attempt { store in
            try settle(store)
            try readMessages(store)
            try keepTime(store)
            try sendAlerts(store)
            try refreshFacts(store)
        }
        tellActivities()
        attempt { try settle($0) }
        statistics.activities = book.count
        statistics.book = book.statistics
        published.publish(statistics)
    }

    // MARK: The database

    /// Does something that takes the database. Where it is away the same is tried again after a reconnect: whatever was not
    /// done is still in its place.
    func attempt(_ body: (PushStore) throws -> Void) {
        guard let store else { return }
        do { try body(store) } catch { failed(error) }
    }

    func failed(_ error: any Error) {
        statistics.failures += 1
        if store?.isBroken ?? true {
            lost(because: error)
        } else {
            // The statement's fault, or a lock's: the connection is good, and the rest can go on.
            logger.warning("Postgres refused something that pushes take, which is tried again: \(error)")
            store = nil
            retryAt = .now + backoff.failed(at: .now, random: .random(in: 0..<1))
        }
    }

    private func lost(because error: any Error) {
        store = nil
        retryAt = .now + backoff.failed(at: .now, random: .random(in: 0..<1))
        if !isAway, mailbox.deadline == nil {
            logger.warning("Pushes wait for Postgres, which is tried again: \(error)")
        }
        isAway = true
    }

    private func connect() {
        do {
            let fresh = try PushStore(
                conninfo: setup.conninfo, node: rules.node, waiter: DeskWaiter(mailbox), logger: logger)
            try fresh.signOfLife()
            store = fresh
            backoff.connected(at: .now)
            retryAt = nil
            if isAway { logger.info("Pushes go on.") }
            isAway = false
            if !wasConnected { try begin(fresh) }
            wasConnected = true
            alertsDue = 0
        } catch {
            failed(error)
        }
    }

    /// Goes on where the hub's last process ended.
    private func begin(_ store: PushStore) throws {
        let moment = now.unix + max(0, restartUntil - now.monotonic)
        let unanswered = try store.resumeAlerts(heldUntil: moment)
        if unanswered > 0 {
            logger.warning(
                """
                \(unanswered) alerts were on their way when this hub ended, and nobody knows whether they arrived; they \
                are not sent again.
                """)
        }
        waitedFor = try store.usersWaitedFor()
        let own = try store.ownActivities()
        fromBefore = Set(own.map(\.id))
        try take(own, store)
        try take(store.adoptOrphans(), store)
    }

    private func keepTime(_ store: PushStore) throws {
        let now = now.monotonic
        if now >= nextSign, book.count > 0 || !waitedFor.isEmpty {
            nextSign = now + Self.signInterval
            try store.signOfLife()
            try take(store.adoptReturned(), store)
            waitedFor = try store.usersWaitedFor()
        }
        if now >= nextRound {
            nextRound = now + Self.roundInterval
            if !waitedFor.isEmpty || book.count > 0 { try store.signOfLife() }
            try take(store.adoptOrphans(), store)
            // What a dead hub held.
            alertsDue = 0
        }
        if now >= nextPrune {
            nextPrune = now + Self.pruneInterval
            _ = try store.prune(olderThan: .seconds(rules.alertLife / 1000 + 7 * 86_400))
        }
    }

    // MARK: Waiting

    private func rest() {
        guard mailbox.deadline == nil else { return }
        let time = now
        var due = nextRound
        if store == nil {
            let left = max(.zero, (retryAt ?? .now) - .now)
            due = min(due, time.monotonic + Int64(left / .milliseconds(1)) + 1)
        } else {
            if let alertsDue { due = min(due, time.monotonic + max(0, alertsDue - time.unix)) }
            if !waitedFor.isEmpty || book.count > 0 { due = min(due, nextSign) }
        }
        if book.count > 0 || !waitedFor.isEmpty { due = min(due, nextLook) }
        if let book = book.nextDue { due = min(due, book) }
        let wait = min(max(1, due - time.monotonic), 60_000)
        var polled = [pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0)]
        _ = poll(&polled, 1, Int32(wait))
    }

    /// Whether it is time to look how people stand, and what they do.
    func isTimeToLook(_ now: Int64) -> Bool {
        guard now >= nextLook else { return false }
        nextLook = now + Self.lookInterval
        return true
    }
}
