import Glibc
package import Hub
package import Logging
import Postgres
import Workers

/// Decides access to private channels by the policies on `realtime.messages` (wire-protocol B), and reads replayed
/// messages.
///
/// Has one thread and two connections of its own, so that neither joins nor the feed ever wait for each other. Questions
/// that arrive while others are being answered are answered together.
///
/// **Shutdown**: `stop` answers waiting questions with `unavailable`. **Overload**: beyond the inbox's capacity, new
/// questions are answered `unavailable` at once; clients come again.
package final class PolicyAuthority: ChannelAuthority {
    private let conninfo: String
    private let logger: Logger
    private let inbox = AuthorityInbox()
    private let thread = WorkerThread(named: "roost-authority")

    package init(conninfo: String, logger: Logger) {
        self.conninfo = conninfo
        self.logger = logger
    }

    /// Starts the thread, which connects and keeps trying. Call it once in the life of an authority.
    package func start() {
        let (conninfo, logger, inbox) = (conninfo, logger, inbox)
        thread.start {
            var loop = AuthorityLoop(conninfo: conninfo, logger: logger, inbox: inbox)
            loop.runUntilStopped()
        }
    }

    /// Ends the thread. A thread that hangs in a policy or in the network is left behind after `patience`: the caller is
    /// about to end the process.
    package func stop(within patience: Duration = .seconds(3)) {
        inbox.stop()
        thread.join(by: .now + patience)
    }

    package func decideQuestion(
        _ question: AuthorizationQuestion, answer: @escaping @Sendable (AuthorizationOutcome) -> Void
    ) {
        if !inbox.postQuestion(PendingQuestion(question: question, answer: answer)) { answer(.unavailable) }
    }

    /// Calls back once everything asked before this call has been answered; on the authority's thread, or this one if that
    /// has ended.
    package func awaitAnswers(_ done: @escaping @Sendable (Bool) -> Void) { inbox.awaitAnswers(done) }
}

/// A question and its callback.
struct PendingQuestion: Sendable {
    let question: AuthorizationQuestion
    let answer: @Sendable (AuthorizationOutcome) -> Void

    var bytes: Int { question.topic.utf8.count + question.claims.json.count }
    var user: [UInt8]? { question.claims.subject.map { Array($0.utf8) } }
}

/// Questions on their way to the authority's thread; posting never waits for the thread.
struct AuthorityInbox: Sendable {
    private struct Content {
        var waiting: [PendingQuestion] = []
        var bytes = 0
        /// By the token's user.
        var ofUsers: [[UInt8]: (count: Int, bytes: Int)] = [:]
        /// Number of questions ever accepted.
        var asked = 0
        /// Callbacks, each waiting until that many questions have been answered.
        var barriers: [(asked: Int, done: @Sendable (Bool) -> Void)] = []
        var isStopping = false
    }

    /// Limit of waiting questions. A loop asks one for each join and each new writer, so this is every socket of a large
    /// hub at once.
    private static let capacity = 100_000
    /// Limit of the questions' bytes; a topic may be as long as a message.
    private static let capacityBytes = 64_000_000
    /// One user may take up a tenth, so that others find room.
    private static let parts = 10
    /// Limit of the bytes taken together.
    private static let batchBytes = 1_000_000

    private let mailbox = WorkerMailbox(Content())

    /// - Returns: false if the question cannot be accepted.
    func postQuestion(_ question: PendingQuestion) -> Bool {
        mailbox.post { content in
            guard !content.isStopping, content.waiting.count < Self.capacity,
                content.bytes + question.bytes <= Self.capacityBytes
            else { return false }
            if let user = question.user {
                let (count, bytes) = content.ofUsers[user] ?? (0, 0)
                guard
                    count == 0
                        || count < Self.capacity / Self.parts
                            && bytes + question.bytes <= Self.capacityBytes / Self.parts
                else { return false }
                content.ofUsers[user] = (count + 1, bytes + question.bytes)
            }
            content.waiting.append(question)
            content.asked += 1
            content.bytes += question.bytes
            return true
        }
    }

    func awaitAnswers(_ done: @escaping @Sendable (Bool) -> Void) {
        let isTaken = mailbox.post { content in
            if !content.isStopping { content.barriers.append((content.asked, done)) }
            return !content.isStopping
        }
        if !isTaken { done(true) }
    }

    /// Takes the barriers whose questions have all been answered; call it when everything taken has been.
    func takeBarriers() -> [@Sendable (Bool) -> Void] {
        mailbox.withContent { content in
            let answered = content.asked - content.waiting.count
            defer { content.barriers.removeAll { $0.asked <= answered } }
            return content.barriers.filter { $0.asked <= answered }.map(\.done)
        }
    }

    var isStopping: Bool { mailbox.withContent { $0.isStopping } }

    func stop() { mailbox.post { $0.isStopping = true } }

    /// Waits for questions, for `stop`, or until `deadline`; takes up to `limit` questions.
    func takeBatch(_ limit: Int, until deadline: ContinuousClock.Instant?) -> [PendingQuestion] {
        let isIdle = mailbox.withContent { $0.waiting.isEmpty && $0.barriers.isEmpty && !$0.isStopping }
        if isIdle { mailbox.wait(until: deadline) }
        return mailbox.takeMail { content in
            var bytes = 0
            let count =
                content.waiting.prefix(limit).firstIndex { question in
                    bytes += question.bytes
                    return bytes > Self.batchBytes
                } ?? min(limit, content.waiting.count)
            let batch = Array(content.waiting.prefix(max(1, count)))
            content.waiting.removeFirst(batch.count)
            content.bytes -= batch.reduce(0) { $0 + $1.bytes }
            for question in batch {
                guard let user = question.user, let (count, bytes) = content.ofUsers[user] else { continue }
                content.ofUsers[user] = count > 1 ? (count - 1, bytes - question.bytes) : nil
            }
            return batch
        }
    }
}

/// The life of the authority's thread: connect, answer until the database goes away, try again.
struct AuthorityLoop: ~Copyable {
    private let conninfo: String
    private let logger: Logger
    private let inbox: AuthorityInbox
    private var session: AuthoritySession?
    private var log: RateLimitedLog
    private var reconnector: Reconnector
    private var lastAttempt: ContinuousClock.Instant?

    /// Minimum time between two attempts to connect when questions trigger them.
    private static let leastPauseMicroseconds: UInt32 = 50_000
    private static let leastPause = Duration.microseconds(leastPauseMicroseconds)
    /// Questions answered together. A batch is one round trip; a larger one delays its first question until the last is
    /// done.
    private static let batch = 500

    init(conninfo: String, logger: Logger, inbox: AuthorityInbox) {
        self.conninfo = conninfo
        self.logger = logger
        self.inbox = inbox
        log = RateLimitedLog(logger: logger)
        reconnector = Reconnector(
            logger: logger, lost: "Private channels cannot be joined until the database is back",
            regained: "Private channels can be joined again.")
    }

    mutating func runUntilStopped() {
        while !inbox.isStopping {
            // Without a connection it wakes up by itself, so that the first question after an outage finds one.
            let batch = inbox.takeBatch(Self.batch, until: session == nil ? reconnector.retryAt ?? .now : nil)
            if !batch.isEmpty {
                answerBatch(batch)
            } else if session == nil, reconnector.isDue {
                openSession()
            }
            let barriers = inbox.takeBarriers()
            // A policy that was changed before the barrier counts after it.
            if !barriers.isEmpty { session?.expireVersion() }
            for done in barriers { done(true) }
        }
        session = nil
        while case let rest = inbox.takeBatch(Self.batch, until: .now), !rest.isEmpty {
            for question in rest { question.answer(.unavailable) }
        }
        for done in inbox.takeBarriers() { done(true) }
    }

    /// Answers every question of the batch.
    private mutating func answerBatch(_ batch: [PendingQuestion]) {
        var left = batch
        while !left.isEmpty {
            let hadSession = session != nil
            if !hadSession {
                // Clients are let in as soon as the feed is back, and some never repeat a join that is then refused: so
                // each question is a reason to try, whatever the schedule says.
                if let lastAttempt, lastAttempt + Self.leastPause > .now { usleep(Self.leastPauseMicroseconds) }
                openSession()
            }
            guard let session else { break }
            do {
                try session.answerBatch(&left, &log)
            } catch {
                let wasFailure = handleError(error)
                // A connection that was lost while idle shows it only now: a fresh one answers.
                guard wasFailure, hadSession else { break }
                reconnector.retryNow()
            }
        }
        for question in left { question.answer(.unavailable) }
    }

    private mutating func openSession() {
        defer { lastAttempt = .now }
        do {
            session = try AuthoritySession(conninfo: conninfo, logger: logger)
            reconnector.connectionOpened()
        } catch {
            _ = handleError(error)
        }
    }

    /// - Returns: true if the connection was given up.
    private mutating func handleError(_ error: any Error) -> Bool {
        if let error = error as? PostgresError, error.kind == .timeout, session?.isBroken == false {
            log.logWarning("Permissions for private channels cannot be checked for now: \(error.message)")
            return false
        }
        session = nil
        reconnector.connectionFailed(error)
        return true
    }
}
