import ChangeFeed
import Glibc
import Hub
import Logging
import Postgres
import Push

/// What the features of the push service share: the time, the rules, who is connected, the database, and the way to
/// Apple.
///
/// Confined to the worker's thread, as all that holds it.
final class PushContext {
    let presence: PresenceView
    let logger: Logger
    /// Shows an activity's state to its user's sockets.
    let show: @Sendable (ActivitySummary) -> Void
    let database: PushDatabase
    let outbox: PushOutbox
    var rules: PushRules
    /// Until when the phones that were connected to the hub's last process may take to come back, in monotonic
    /// milliseconds.
    let restartUntil: Int64
    private let clock: @Sendable () -> HubTime

    init(_ setup: PushServiceSetup, _ mailbox: PushServiceMailbox, _ client: PushClient) {
        presence = setup.presence
        logger = setup.logger
        show = setup.show
        clock = setup.clock
        rules = setup.rules
        restartUntil = setup.clock().monotonic + setup.rules.restartWindow
        database = PushDatabase(setup, mailbox)
        outbox = PushOutbox(client, database, setup.logger)
    }

    var now: HubTime { clock() }
}

/// The push service's connection to Postgres, which is opened anew whenever it fails. Confined to the worker's thread.
final class PushDatabase {
    /// Nil while the database is away, and for a while after it has refused a statement.
    private(set) var store: PushStore?
    /// How often the database refused a statement, or was away.
    private(set) var failures = 0
    private let conninfo: String
    private let node: String
    private let mailbox: PushServiceMailbox
    private let logger: Logger
    private var backoff = Backoff()
    private var retryAt: ContinuousClock.Instant?
    private var isAway = false
    private var hasBegun = false

    init(_ setup: PushServiceSetup, _ mailbox: PushServiceMailbox) {
        conninfo = setup.conninfo
        node = setup.rules.node
        logger = setup.logger
        self.mailbox = mailbox
    }

    /// Whether it is time to connect.
    var isConnectionDue: Bool { store == nil && retryAt.map { $0 <= .now } ?? true }

    /// How long to wait before the next attempt to connect, in milliseconds.
    var retryDelay: Int64 { Int64(max(.zero, (retryAt ?? .now) - .now) / .milliseconds(1)) }

    /// - Parameter begin: what is done with the first connection; it is repeated with the next where it fails.
    /// - Returns: whether there is a connection.
    func connect(_ begin: (PushStore) throws -> Void) -> Bool {
        do {
            let fresh = try PushStore(
                conninfo: conninfo, node: node, waiter: PushSocketWaiter(mailbox), logger: logger)
            try fresh.signOfLife()
            store = fresh
            backoff.connected(at: .now)
            retryAt = nil
            if isAway { logger.info("Pushes go on.") }
            isAway = false
            if !hasBegun { try begin(fresh) }
            hasBegun = true
            return true
        } catch {
            failed(error)
            return false
        }
    }

    /// Does something that takes the database; nothing where it is away. Whoever calls keeps what was not done in its
    /// place, so that it is tried again after a reconnect.
    func attempt(_ body: (PushStore) throws -> Void) {
        guard let store else { return }
        do { try body(store) } catch { failed(error) }
    }

    /// Counts and logs a failure, and sees to it that the connection is opened anew.
    func failed(_ error: any Error) {
        failures += 1
        let isLost = store?.isBroken ?? true
        store = nil
        retryAt = .now + backoff.failed(at: .now, random: .random(in: 0..<1))
        guard isLost else {
            // The statement's fault, or a lock's: the connection is good, and the rest can go on.
            logger.warning("Postgres refused something that pushes take, which is tried again: \(error)")
            return
        }
        if !isAway, mailbox.deadline == nil {
            logger.warning("Pushes wait for Postgres, which is tried again: \(error)")
        }
        isAway = true
    }
}

/// Waits for Postgres, and no longer than the push service may live.
private final class PushSocketWaiter: SocketWaiter {
    private let mailbox: PushServiceMailbox

    init(_ mailbox: PushServiceMailbox) { self.mailbox = mailbox }

    func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws {
        while true {
            let end = min(deadline, mailbox.deadline ?? deadline)
            // In slices, so that a stop is noticed; the mailbox's own descriptor is readable for other reasons, too.
            let slice = min(end, .now + .milliseconds(200))
            var polled = [pollfd(fd: descriptor, events: events, revents: 0)]
            let left = max(.zero, slice - .now)
            _ = poll(&polled, 1, Int32(left / .milliseconds(1)) + 1)
            if polled[0].revents != 0 { return }
            if ContinuousClock.now >= end { throw PostgresError(.timeout, "Postgres did not answer in time.") }
        }
    }
}

/// What a push in flight is about, for when its outcome comes.
enum InFlightPush {
    case alert(message: String, user: String)
    case activity(id: String, timestamp: Int64)
}

/// Hands pushes to the client, and knows which are in flight and which tokens are of no use. Confined to the worker's
/// thread.
final class PushOutbox {
    private let client: PushClient
    private let database: PushDatabase
    private let logger: Logger
    private var inFlight: [PushID: InFlightPush] = [:]
    /// Tokens that Apple does not know: nothing is sent to them until they are registered again.
    private var badTokens: Set<PushToken> = []
    /// Tokens that Apple said are gone, and that were dropped from the database.
    private(set) var droppedTokens = 0

    init(_ client: PushClient, _ database: PushDatabase, _ logger: Logger) {
        self.client = client
        self.database = database
        self.logger = logger
    }

    /// Pushes whose outcome somebody waits for.
    var count: Int { inFlight.count }

    /// How many more pushes the client takes.
    var room: Int { client.room }

    func send(_ pushes: [(push: Push, about: InFlightPush)]) {
        for (push, about) in pushes { inFlight[push.id] = about }
        client.send(pushes.map(\.push))
    }

    /// Sends pushes whose outcome nobody waits for, such as a start or a broadcast.
    func sendUntracked(_ pushes: [Push]) { client.send(pushes) }

    func isBad(_ token: PushToken) -> Bool { badTokens.contains(token) }

    /// The token was registered, so it is tried again.
    func registered(_ token: PushToken) { badTokens.remove(token) }

    /// Notes what the outcome says of the token.
    ///
    /// - Returns: what the push was about; nil where nobody waits for it.
    func finish(_ push: Push, _ outcome: PushOutcome) -> InFlightPush? {
        if case .device(let destination) = push.target { note(outcome, of: destination) }
        switch outcome {
        case .refused, .tooLarge, .badToken:
            logger.warning("Apple does not take the push \(push.id): \(outcome.words)")
        case .delivered, .unregistered, .superseded, .expired, .overflow, .unanswered, .stopped: break
        }
        return inFlight.removeValue(forKey: push.id)
    }

    private func note(_ outcome: PushOutcome, of destination: PushDestination) {
        switch outcome {
        case .unregistered(let since):
            // The token is gone, unless it was registered again since.
            database.attempt { droppedTokens += try $0.drop(destination, ifRegisteredBefore: since) }
        case .badToken:
            // It stays in the table: a wrong environment in the configuration must not cost all tokens.
            badTokens.insert(destination.token)
        default: break
        }
    }
}

extension PushOutcome {
    /// The outcome in a few words, for the table and the log.
    var words: String {
        switch self {
        case .delivered: "delivered"
        case .unregistered: "unregistered"
        case .refused(let status, let reason): "\(status) \(reason)"
        case .badToken(let reason): "bad token: \(reason)"
        case .superseded: "superseded"
        case .expired: "expired"
        case .overflow: "overflow"
        case .tooLarge(let bytes, let limit): "\(bytes) bytes, of \(limit)"
        case .unanswered: "unanswered"
        case .stopped: "stopped"
        }
    }
}
