import Glibc
package import Hub
package import Logging
import Postgres
import Wire
import Workers

/// Stores broadcasts as rows of `realtime.messages`, many per statement: messages that arrive during one write are in
/// the next.
///
/// Uses one thread and one session. Nothing is written twice: a batch whose commit is uncertain, because its session
/// was lost, is not written again, and its messages are acknowledged without an ID. While there is no session, messages
/// wait as long as clients do.
package final class MessageWriter: MessageStore {
    private let conninfo: String
    private let logger: Logger
    private let inbox = MessageInbox()
    private let published = Published(MessageStatistics())
    private let thread = WorkerThread(named: "roost-messages")

    /// Less than the 10 s that clients wait.
    private static let patience = Duration.seconds(8)

    package init(conninfo: String, logger: Logger) {
        self.conninfo = conninfo
        self.logger = logger
    }

    /// Starts the thread, which connects when the first message arrives. Call once.
    package func start() {
        let (conninfo, logger, inbox, published) = (conninfo, logger, inbox, published)
        thread.start {
            var worker = MessageWorker(conninfo, logger, inbox, published)
            worker.runUntilStopped()
        }
    }

    /// Writes what is waiting and stops the thread. A thread that hangs is left behind after `patience`.
    package func stop(within patience: Duration = .seconds(2)) {
        inbox.stop()
        thread.join(by: .now + patience)
    }

    package func storeMessage(_ message: PersistedMessage, answer: @escaping @Sendable (String?) -> Void) {
        let pending = PendingMessage(message: message, answer: answer, deadline: .now + Self.patience)
        if !inbox.post(pending) { answer(nil) }
    }

    /// As of the last batch; callable from any thread.
    package var statistics: MessageStatistics {
        var statistics = published.value
        statistics.waiting = inbox.waiting
        return statistics
    }
}

/// Counters since the writer's creation.
package struct MessageStatistics: Sendable, Equatable {
    /// Messages that were stored.
    package var stored = 0
    /// Messages that were not stored, or may not have been.
    package var failed = 0
    /// Statements that stored them.
    package var batches = 0
    /// Messages that are waiting.
    package var waiting = 0

    package init() {}
}

/// The loop of the thread that writes broadcasts.
private struct MessageWorker: ~Copyable {
    private let conninfo: String
    private let logger: Logger
    private let inbox: MessageInbox
    private let published: Published<MessageStatistics>
    private var statistics = MessageStatistics()
    private var session: MessageSession?
    private var reconnector: Reconnector
    private var warnings: RateLimitedLog
    private var random = SystemRandomNumberGenerator()

    /// The pause between two attempts while there is no session, or while the table is locked.
    private static let pauseMicroseconds: UInt32 = 50_000

    init(_ conninfo: String, _ logger: Logger, _ inbox: MessageInbox, _ published: Published<MessageStatistics>) {
        self.conninfo = conninfo
        self.logger = logger
        self.inbox = inbox
        self.published = published
        reconnector = Reconnector(
            logger: logger, lost: "Broadcasts that ask to be kept wait for the database",
            regained: "Broadcasts that ask to be kept are written again.")
        warnings = RateLimitedLog(logger: logger)
    }

    mutating func runUntilStopped() {
        while !inbox.isStopping {
            inbox.waitForMessages(until: nil)
            writeWaiting()
            published.value = statistics
        }
        // Makes one last attempt to write the rest.
        writeWaiting()
        let rest = takeRemaining()
        failBatch(rest, because: "the hub stops")
        session = nil
        published.value = statistics
    }

    private mutating func writeWaiting() {
        if session == nil, inbox.waiting > 0, reconnector.isDue || inbox.isStopping { connect() }
        guard session != nil else {
            failBatch(inbox.takeLate(at: .now), because: "the database is away")
            // Pauses until the next attempt, except when stopping.
            if !inbox.isStopping, inbox.waiting > 0 { usleep(Self.pauseMicroseconds) }
            return
        }
        while session != nil, case let batch = inbox.takeBatch(), !batch.isEmpty { writeBatch(batch[...]) }
        let dropped = inbox.takeDropped()
        guard dropped > 0 else { return }
        statistics.failed += dropped
        warnings.logWarning(
            "UnableToPersistMessage: broadcasts that ask to be kept are not, as too many wait for the database",
            about: "dropped")
    }

    private mutating func takeRemaining() -> [PendingMessage] {
        var rest: [PendingMessage] = []
        while case let batch = inbox.takeBatch(), !batch.isEmpty { rest += batch }
        return rest
    }

    private mutating func connect() {
        do {
            session = try MessageSession(conninfo, logger)
            reconnector.connectionOpened()
        } catch {
            reconnector.connectionFailed(error, isStopping: inbox.isStopping)
        }
    }

    /// Writes a batch; if the server refuses it, in halves, so that an invalid message does not block the others.
    private mutating func writeBatch(_ batch: ArraySlice<PendingMessage>) {
        guard let session else { return failBatch(batch, because: "the connection was lost") }
        let ids = batch.map { _ in UUIDText.formatUUID(UInt128.random(in: .min ... .max, using: &random), version: 4) }
        do {
            try session.writeMessages(batch.map(\.message), ids)
            statistics.batches += 1
            statistics.stored += batch.count
            for (pending, id) in zip(batch, ids) { pending.answer(id) }
        } catch let error as PostgresError where !session.isBroken {
            if Self.mayPass(error), let first = batch.first, ContinuousClock.now < first.deadline {
                usleep(Self.pauseMicroseconds)
                return writeBatch(batch)
            }
            guard batch.count > 1, Self.mayBeOneRow(error) else {
                return failBatch(batch, because: Self.failureReason(error))
            }
            let middle = batch.startIndex + batch.count / 2
            writeBatch(batch[..<middle])
            writeBatch(batch[middle...])
        } catch {
            // It may have been committed, so it is not written again.
            failBatch(batch, because: "the connection was lost")
            self.session = nil
            reconnector.connectionFailed(error, isStopping: inbox.isStopping)
        }
    }

    /// Whether a retry may succeed; nothing was written (Postgres, appendix A).
    private static func mayPass(_ error: PostgresError) -> Bool {
        ["40", "55", "57014"].contains { error.sqlState?.hasPrefix($0) == true }
    }

    /// Whether one row may be the cause: its text is invalid for Postgres, it is too large, or a trigger refuses it.
    private static func mayBeOneRow(_ error: PostgresError) -> Bool {
        ["22", "54", "P0"].contains { error.sqlState?.hasPrefix($0) == true }
    }

    /// The reason, preceded by Supabase Realtime's code for it, if there is one (supabase/realtime 2.174,
    /// ERROR_CODES.md).
    private static func failureReason(_ error: PostgresError) -> String {
        let code: String? =
            switch error.sqlState {
            // Supabase's table has no partition for today's rows.
            case SQLState.checkViolation: "MissingPartition"
            case SQLState.queryCanceled: "QueryCanceled"
            case SQLState.insufficientPrivilege, SQLState.invalidObjectDefinition: "RlsPolicyError"
            default: nil
            }
        return code.map { "\($0): \(error.message)" } ?? error.message
    }

    private mutating func failBatch(_ batch: some Collection<PendingMessage>, because reason: String) {
        guard !batch.isEmpty else { return }
        statistics.failed += batch.count
        warnings.logWarning(
            "UnableToPersistMessage: \(reason). The broadcasts were delivered; `roost doctor` tells what the hub's role needs.",
            about: reason)
        for pending in batch { pending.answer(nil) }
    }
}

/// One session of the writer.
private final class MessageSession {
    private let connection: PostgresConnection
    private let expires: Bool

    /// The limit for one statement; clients give up after 10 s.
    private static let limit = Duration.seconds(8)

    init(_ conninfo: String, _ logger: Logger) throws {
        connection = try PresenceSession.openSession(
            conninfo, waiter: PlainWaiter(), logger: logger, within: .seconds(5))
        try connection.runScript(MessageSQL.messageSession)
        let columns = try connection.query(MessageSQL.messageColumns, within: Self.limit)
        guard columns.flag(0, 0) else {
            throw PostgresError(
                .server,
                "realtime.messages has no column skip_broadcast, so that what is kept would be broadcast again; run `roost migrate`, or "
                    + "update Supabase's Realtime")
        }
        expires = columns.flag(0, 1)
    }

    var isBroken: Bool { connection.isBroken }

    func writeMessages(_ messages: [PersistedMessage], _ ids: [String]) throws {
        var columns = [TextArray](repeating: TextArray(), count: expires ? 6 : 5)
        for (message, id) in zip(messages, ids) {
            guard expires || message.ttl == nil else {
                throw PostgresError(
                    .server, sqlState: "22000", "realtime.messages has no column expires_at; update Supabase's Realtime"
                )
            }
            guard !message.topic.utf8.contains(0), !message.event.utf8.contains(0) else {
                throw PostgresError(.server, sqlState: "22021", "no text of Postgres' holds a NUL")
            }
            columns[0].append(id.utf8)
            columns[1].append(message.topic.utf8)
            columns[2].append(message.event.utf8)
            switch message.body {
            case .json(let bytes):
                columns[3].append(bytes)
                columns[4].append([UInt8]?.none)
            case .binary(let bytes):
                columns[3].append([UInt8]?.none)
                columns[4].append(Array("\\x".utf8) + Array(Hexadecimal.text(bytes).utf8))
            }
            if expires { message.ttl.map { columns[5].append(Int64($0)) } ?? columns[5].append([UInt8]?.none) }
        }
        _ = try connection.query(
            expires ? MessageSQL.storeExpiringMessages : MessageSQL.storeMessages, columns.map(\.literal),
            within: Self.limit)
    }
}
