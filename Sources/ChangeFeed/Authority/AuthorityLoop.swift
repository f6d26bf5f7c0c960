import Hub
import Logging
import Postgres

/// The life of the authority's thread: connect, answer until the database goes away, try again.
struct AuthorityLoop: ~Copyable {
    private let conninfo: String
    private let logger: Logger
    private let inbox: AuthorityInbox
    private var session: AuthoritySession?
    private var complaints: Complaints
    private var backoff = Backoff()
    private var retryAt: ContinuousClock.Instant? = .now
    private var isAway = false

    /// Answered together. A batch is one round trip; a larger one keeps the first of it waiting for the last.
    private static let batch = 500

    init(conninfo: String, logger: Logger, inbox: AuthorityInbox) {
        self.conninfo = conninfo
        self.logger = logger
        self.inbox = inbox
        complaints = Complaints(logger: logger)
    }

    mutating func run() {
        while !inbox.isStopping {
            // Without a connection it wakes up by itself, so that the first question after an outage finds one.
            let batch = inbox.take(Self.batch, until: session == nil ? retryAt : nil)
            if !batch.isEmpty {
                serve(batch)
            } else if session == nil, retryAt.map({ $0 <= .now }) ?? true {
                connect()
            }
        }
        session = nil
        while case let rest = inbox.take(Self.batch, until: .now), !rest.isEmpty {
            for question in rest { question.answer(.unavailable) }
        }
        inbox.noteEnd()
    }

    /// Answers every question of the batch.
    private mutating func serve(_ batch: [PendingQuestion]) {
        var left = batch
        while !left.isEmpty {
            let hadSession = session != nil
            if !hadSession {
                if let retryAt, retryAt > .now { break }
                connect()
            }
            guard let session else { break }
            do {
                try session.answer(&left, &complaints)
            } catch {
                let wasFailure = note(error)
                // A connection that was lost while nobody asked shows it only now: a fresh one answers.
                guard wasFailure, hadSession else { break }
                retryAt = nil
            }
        }
        for question in left { question.answer(.unavailable) }
    }

    private mutating func connect() {
        do {
            session = try AuthoritySession(conninfo: conninfo, logger: logger)
            backoff.connected(at: .now)
            retryAt = nil
            if isAway { logger.info("Private channels can be joined again.") }
            isAway = false
        } catch {
            _ = note(error)
        }
    }

    /// - Returns: whether the connection is to be given up.
    private mutating func note(_ error: any Error) -> Bool {
        if let error = error as? PostgresError, error.kind == .timeout, session?.isBroken == false {
            complaints.note("Private channels are not decided for now: \(error.message)")
            return false
        }
        session = nil
        retryAt = .now + backoff.failed(at: .now, random: .random(in: 0..<1))
        if !isAway { logger.warning("Private channels cannot be joined until the database is back: \(error)") }
        isAway = true
        return true
    }
}
