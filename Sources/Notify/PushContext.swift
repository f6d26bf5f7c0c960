import Hub
import Logging
import Postgres
import Push
import Stores
import Wire
import Workers

/// The shared state of the push service's features: the time, the rules, presence, the database, and the outputs.
///
/// Confined to the worker's thread, like everything that holds it.
final class PushContext {
    let presence: PresenceView
    let logger: Logger
    /// Shows an activity's state to its user's sockets.
    let show: @Sendable (ActivitySummary) -> Void
    /// Asks the sockets of a loop which messages they have certainly received.
    let ask: @Sendable ([ReceiptQuestion], Int) -> Void
    let database: PushDatabase
    let outbox: PushOutbox
    var rules: PushRules
    /// The time until which the phones that were connected to the hub's last process may come back, in monotonic milliseconds.
    let restartUntil: Int64
    /// The tables whose rows are pushed when a time in them has come.
    private(set) lazy var timedTables = TimedTables(self)
    private let clock: @Sendable () -> HubTime
    private let mailbox: PushServiceMailbox

    init(_ setup: PushServiceSetup, _ mailbox: PushServiceMailbox, _ clients: PushClients) {
        presence = setup.presence
        logger = setup.logger
        show = setup.show
        ask = setup.ask
        clock = setup.clock
        rules = setup.rules
        restartUntil = setup.clock().monotonic + setup.rules.restartWindow
        database = PushDatabase(setup, mailbox)
        outbox = PushOutbox(clients, database, setup.logger)
        self.mailbox = mailbox
    }

    var now: HubTime { clock() }
    /// Whether the clients accept anything; they do not when the service is about to stop.
    var maySend: Bool { mailbox.maySend }
}

/// The push service's connection to Postgres, which is reopened after a failure. Confined to the worker's thread.
final class PushDatabase {
    /// Nil while the database is away, and for a while after it has refused a statement.
    private(set) var store: PushStore?
    /// The number of times that the database refused a statement, or was away.
    private(set) var failures = 0
    private let conninfo: String
    private let node: String
    private let tokens: AppTokens?
    private let mailbox: PushServiceMailbox
    private let logger: Logger
    private var reconnector: Reconnector
    private var hasBegun = false

    init(_ setup: PushServiceSetup, _ mailbox: PushServiceMailbox) {
        conninfo = setup.conninfo
        node = setup.rules.node
        tokens = setup.rules.tokens.map {
            AppTokens($0, environment: setup.rules.environment, bundle: Name(setup.rules.bundle))
        }
        logger = setup.logger
        self.mailbox = mailbox
        reconnector = Reconnector(
            logger: setup.logger, lost: "Pushes wait for Postgres; the hub keeps trying", regained: "Pushes go on.")
    }

    /// Whether it is time to connect.
    var isConnectionDue: Bool { store == nil && reconnector.isDue }

    /// The wait before the next attempt to connect, in milliseconds.
    var retryDelay: Int64 { max(.zero, (reconnector.retryAt ?? .now) - .now).milliseconds }

    /// - Parameter begin: the work on the first connection; it is repeated with the next one if it fails.
    /// - Returns: whether there is a connection.
    func connect(_ begin: (PushStore) throws -> Void) -> Bool {
        do {
            let fresh = try PushStore(
                conninfo: conninfo, node: node, waiter: PlainWaiter(until: mailbox.stopSignal), tokens: tokens,
                logger: logger)
            try fresh.heartbeat()
            store = fresh
            reconnector.connectionOpened()
            if !hasBegun { try begin(fresh) }
            hasBegun = true
            return true
        } catch {
            failed(error)
            return false
        }
    }

    /// Does work that needs the database; nothing while it is away. The caller keeps unfinished work in its place, so that it is tried
    /// again after a reconnect.
    func attempt(_ body: (PushStore) throws -> Void) {
        guard let store else { return }
        do { try body(store) } catch { failed(error) }
    }

    /// Counts and logs a failure, and has the connection reopened if necessary.
    func failed(_ error: any Error) {
        failures += 1
        let isLost = store?.isBroken ?? true
        store = nil
        guard isLost else {
            // The statement is to blame, or a lock: the connection is good, and the rest can go on.
            reconnector.givenUp()
            logger.warning("Postgres refused a statement that pushes need; the hub tries it again: \(error)")
            return
        }
        reconnector.connectionFailed(error, isStopping: mailbox.deadline != nil)
    }
}
