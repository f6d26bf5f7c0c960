import Glibc
package import Hub
package import Logging
import Postgres
import Workers

/// Decides about private channels by the policies on `realtime.messages` (wire-protocol B), and reads what is replayed.
///
/// It has one thread and two connections of its own, so that joins never wait for the feed, nor the feed for them.
/// Questions that arrive while others are answered are answered together.
///
/// **Shutdown**: `stop` answers what waits with `unavailable`. **Overload**: beyond what the inbox holds, new questions
/// are answered `unavailable` at once; clients come again.
package final class PolicyAuthority: ChannelAuthority {
    private let conninfo: String
    private let logger: Logger
    private let inbox = AuthorityInbox()
    private let thread = WorkerThread(named: "roost-authority")

    package init(conninfo: String, logger: Logger) {
        self.conninfo = conninfo
        self.logger = logger
    }

    /// Starts the thread; it connects, and keeps trying. Once in the life of an authority.
    package func start() {
        let (conninfo, logger, inbox) = (conninfo, logger, inbox)
        thread.start {
            var loop = AuthorityLoop(conninfo: conninfo, logger: logger, inbox: inbox)
            loop.run()
        }
    }

    /// Ends the thread. One that hangs in a policy or in the network is left behind after `patience`: whoever stops an
    /// authority is about to end the process.
    package func stop(within patience: Duration = .seconds(3)) {
        inbox.stop()
        thread.join(by: .now + patience)
    }

    package func decide(
        _ question: AuthorizationQuestion, answer: @escaping @Sendable (AuthorizationOutcome) -> Void
    ) {
        if !inbox.post(PendingQuestion(question: question, answer: answer)) { answer(.unavailable) }
    }

    /// Calls back once all that was asked before this call is answered; from the authority's thread, or this one where it has ended.
    package func awaitAnswers(_ done: @escaping @Sendable (Bool) -> Void) { inbox.await(done) }
}

/// A question and the way back.
struct PendingQuestion: Sendable {
    let question: AuthorizationQuestion
    let answer: @Sendable (AuthorizationOutcome) -> Void

    var bytes: Int { question.topic.utf8.count + question.claims.json.count }
    var user: [UInt8]? { question.claims.subject.map { Array($0.utf8) } }
}

/// Questions on their way to the authority's thread; posting never waits for it.
struct AuthorityInbox: Sendable {
    private struct Content {
        var waiting: [PendingQuestion] = []
        var bytes = 0
        /// By the token's user.
        var ofUsers: [[UInt8]: (count: Int, bytes: Int)] = [:]
        /// Questions that were ever taken.
        var asked = 0
        /// Callbacks that wait until so many are answered.
        var barriers: [(asked: Int, done: @Sendable (Bool) -> Void)] = []
        var isStopping = false
    }

    /// Questions that may wait. A loop asks one for each join and each new writer, so this is every socket of a large hub
    /// at once.
    private static let capacity = 100_000
    /// Bytes of what they say; a topic may be as long as a message.
    private static let capacityBytes = 64_000_000
    /// One user's may be a tenth, so that others find room.
    private static let parts = 10
    /// Of those that are taken together.
    private static let batchBytes = 1_000_000

    private let mailbox = WorkerMailbox(Content())

    /// - Returns: false where the question cannot be taken.
    func post(_ question: PendingQuestion) -> Bool {
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

    func await(_ done: @escaping @Sendable (Bool) -> Void) {
        let isTaken = mailbox.post { content in
            if !content.isStopping { content.barriers.append((content.asked, done)) }
            return !content.isStopping
        }
        if !isTaken { done(true) }
    }

    /// The barriers whose questions are all answered; to be called when everything that was taken is.
    func takeBarriers() -> [@Sendable (Bool) -> Void] {
        mailbox.look { content in
            let answered = content.asked - content.waiting.count
            defer { content.barriers.removeAll { $0.asked <= answered } }
            return content.barriers.filter { $0.asked <= answered }.map(\.done)
        }
    }

    var isStopping: Bool { mailbox.look { $0.isStopping } }

    func stop() { mailbox.post { $0.isStopping = true } }

    /// Waits for questions, for `stop`, or until `deadline`; takes up to `limit` questions.
    func take(_ limit: Int, until deadline: ContinuousClock.Instant?) -> [PendingQuestion] {
        let isIdle = mailbox.look { $0.waiting.isEmpty && $0.barriers.isEmpty && !$0.isStopping }
        if isIdle { mailbox.wait(until: deadline) }
        return mailbox.take { content in
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

    /// Between two attempts to connect, where questions ask for them.
    private static let leastPauseMicroseconds: UInt32 = 50_000
    private static let leastPause = Duration.microseconds(leastPauseMicroseconds)
    /// Answered together. A batch is one round trip; a larger one keeps the first of it waiting for the last.
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

    mutating func run() {
        while !inbox.isStopping {
            // Without a connection it wakes up by itself, so that the first question after an outage finds one.
            let batch = inbox.take(Self.batch, until: session == nil ? reconnector.retryAt ?? .now : nil)
            if !batch.isEmpty {
                serve(batch)
            } else if session == nil, reconnector.isDue {
                connect()
            }
            let barriers = inbox.takeBarriers()
            // A policy that was changed before the barrier counts after it.
            if !barriers.isEmpty { session?.expireVersion() }
            for done in barriers { done(true) }
        }
        session = nil
        while case let rest = inbox.take(Self.batch, until: .now), !rest.isEmpty {
            for question in rest { question.answer(.unavailable) }
        }
        for done in inbox.takeBarriers() { done(true) }
    }

    /// Answers every question of the batch.
    private mutating func serve(_ batch: [PendingQuestion]) {
        var left = batch
        while !left.isEmpty {
            let hadSession = session != nil
            if !hadSession {
                // Clients are let in as soon as the feed is back, and some never repeat a join that is refused then: whoever asks is
                // a reason to try, whatever the schedule says.
                if let lastAttempt, lastAttempt + Self.leastPause > .now { usleep(Self.leastPauseMicroseconds) }
                connect()
            }
            guard let session else { break }
            do {
                try session.answer(&left, &log)
            } catch {
                let wasFailure = note(error)
                // A connection that was lost while nobody asked shows it only now: a fresh one answers.
                guard wasFailure, hadSession else { break }
                reconnector.retryNow()
            }
        }
        for question in left { question.answer(.unavailable) }
    }

    private mutating func connect() {
        defer { lastAttempt = .now }
        do {
            session = try AuthoritySession(conninfo: conninfo, logger: logger)
            reconnector.connected()
        } catch {
            _ = note(error)
        }
    }

    /// - Returns: whether the connection is to be given up.
    private mutating func note(_ error: any Error) -> Bool {
        if let error = error as? PostgresError, error.kind == .timeout, session?.isBroken == false {
            log.note("Permissions for private channels cannot be checked for now: \(error.message)")
            return false
        }
        session = nil
        reconnector.failed(error)
        return true
    }
}
