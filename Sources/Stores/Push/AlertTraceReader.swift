package import Logging
import Postgres
import Workers

/// Reads the outcomes of alerts for the operator's page, one question at a time.
///
/// It has a thread and a session of its own, so that no alert waits for a visitor of the page: in a long queue a question takes
/// seconds. The thread starts with the first question, and the session ends when none has come for a while. Safe from any thread.
package final class AlertTraceReader: Sendable {
    /// The newest alerts, or a sentence that explains why there are none.
    package enum Answer: Sendable, Equatable {
        case found([AlertTrace.Entry])
        case failed(String)
    }

    private struct Mail {
        var questions: [Question] = []
        var isStopping = false
    }

    private struct Question {
        let subject: AlertTrace.Subject
        let limit: Int
        let reply: @Sendable (Answer) -> Void
    }

    private let conninfo: String
    private let logger: Logger
    private let mailbox = WorkerMailbox(Mail())
    private let thread = WorkerThread(named: "roost-trace")
    private let stopSignal = StopSignal()

    /// The maximum number of waiting questions; more are refused at once.
    private static let mostWaiting = 16
    /// The time that the session is kept for another question.
    private static let idle = Duration.seconds(30)
    /// The longest wait for any answer of the server, which itself ends the statement earlier (`TraceSession`).
    private static let patience = Duration.seconds(5)

    package init(conninfo: String, logger: Logger) {
        self.conninfo = conninfo
        self.logger = logger
    }

    /// Asks for the newest alerts of a subject. Never waits; the answer comes on the reader's thread, or at once if too many questions
    /// wait.
    package func read(
        _ subject: AlertTrace.Subject, limit: Int, then reply: @escaping @Sendable (Answer) -> Void
    ) {
        let isTaken = mailbox.post { mail in
            guard !mail.isStopping, mail.questions.count < Self.mostWaiting else { return false }
            mail.questions.append(Question(subject: subject, limit: limit, reply: reply))
            return true
        }
        guard isTaken else { return reply(.failed("Too many questions about alerts wait already; ask again later.")) }
        thread.start { [self] in run() }
    }

    /// Ends the thread; questions still open stay unanswered.
    package func stop() {
        let deadline = ContinuousClock.now + .seconds(1)
        mailbox.post { $0.isStopping = true }
        stopSignal.stop(by: deadline)
        thread.join(by: deadline + .milliseconds(100))
    }

    private func run() {
        var session: PostgresConnection?
        while true {
            let (question, isStopping) = mailbox.takeMail { mail in
                (mail.questions.isEmpty ? nil : mail.questions.removeFirst(), mail.isStopping)
            }
            if isStopping { return }
            if let question {
                question.reply(answer(question, &session))
                continue
            }
            mailbox.wait(until: session == nil ? nil : .now + Self.idle)
            if mailbox.withContent({ $0.questions.isEmpty }) { session = nil }
        }
    }

    private func answer(_ question: Question, _ session: inout PostgresConnection?) -> Answer {
        do {
            let connection = try session ?? open()
            session = connection
            return .found(
                try AlertTrace.read(question.subject, limit: question.limit, on: connection, within: Self.patience))
        } catch {
            if session?.isBroken ?? true { session = nil }
            return .failed(Self.sentence(error))
        }
    }

    private func open() throws -> PostgresConnection {
        let connection = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: PlainWaiter(until: stopSignal), logger: logger,
            within: Self.patience)
        try connection.runScript(AlertTraceSQL.traceSession)
        return connection
    }

    private static func sentence(_ error: any Error) -> String {
        guard let error = error as? PostgresError else { return "The alerts cannot be read: \(error)." }
        switch error.kind {
        case .connection: return error.connectionSentence
        case .server where error.sqlState == SQLState.queryCanceled, .timeout:
            return "Postgres took too long to find them; `roost alerts` waits longer."
        case .server: return "The alerts cannot be read: \(error.message)."
        }
    }
}
