package import Hub
package import Logging
import Postgres
import Schema
package import Streams
import Wire
import Workers

/// Commits the rows of streams that end (`streams.on_close`), each in one transaction with the record that its stream
/// has ended.
///
/// Uses one thread and one session, and no part of the hub waits for it. With rules, the session is opened at the
/// start, to check whether they fit the database; otherwise when an earlier end has to be settled. Jobs are done in
/// order. While the database is away, closes are answered as unknown, and the hub asks later for their outcome.
///
/// **Thread**: any; call `start` once and `stop` once.
package final class StreamRowWriter: StreamCommitter {
    private struct Mail {
        var jobs: [Job] = []
        var isStopping = false
    }

    private enum Job {
        case commit(StreamCommit, at: ContinuousClock.Instant, @Sendable (StreamCommitOutcome) -> Void)
        case settle(StreamCommitKey, @Sendable (StreamCommitOutcome) -> Void)
        case forget(StreamCommitKey)
    }

    private let conninfo: String
    private let rules: [CloseRule]
    private let logger: Logger
    private let mailbox = WorkerMailbox(Mail())
    private let thread = WorkerThread(named: "roost-rows")
    private let stopSignal = StopSignal()
    private let published = Published(Statistics())

    /// Counters for the metrics.
    package struct Statistics: Sendable {
        package var committed = 0
        /// Ends whose statement failed: the streams stay open.
        package var refused = 0
        /// Ends whose outcome is unknown, as the database could not be asked.
        package var unknown = 0
        /// The time from the request of an end to its outcome.
        package var time = Histogram.ofLatency
    }

    package var statistics: Statistics { published.value }

    /// The most waiting ends, each with the whole content of its stream.
    private static let mostJobs = 1000

    /// - Parameter rules: the rules of `streams.on_close`; empty if only earlier ends have to be settled.
    package init(conninfo: String, rules: [CloseRule], logger: Logger) {
        self.conninfo = conninfo
        self.rules = rules
        self.logger = logger
    }

    package func start() {
        thread.start { [self] in
            var worker = Worker(self)
            worker.runUntilStopped()
        }
    }

    /// Stops the thread after some seconds at most; the next process settles what was not answered.
    package func stop() {
        let deadline = ContinuousClock.now + .seconds(3)
        mailbox.post { $0.isStopping = true }
        stopSignal.stop(by: deadline)
        thread.join(by: deadline + .milliseconds(100))
    }

    package func commitEnd(_ commit: StreamCommit, answer: @escaping @Sendable (StreamCommitOutcome) -> Void) {
        postJob(.commit(commit, at: .now, answer), orElse: answer)
    }

    package func settleAttempt(_ key: StreamCommitKey, answer: @escaping @Sendable (StreamCommitOutcome) -> Void) {
        postJob(.settle(key, answer), orElse: answer)
    }

    package func forgetAttempt(_ key: StreamCommitKey) { postJob(.forget(key)) { _ in } }

    private func postJob(_ job: Job, orElse answer: (StreamCommitOutcome) -> Void) {
        let isTaken = mailbox.post { mail in
            guard !mail.isStopping, mail.jobs.count < Self.mostJobs else { return false }
            mail.jobs.append(job)
            return true
        }
        if !isTaken { answer(.unknown) }
    }

    /// The state of the writer's thread.
    private struct Worker {
        private let writer: StreamRowWriter
        private var connection: PostgresConnection?
        private var reconnector: Reconnector
        private var statistics = Statistics()
        /// True once the statements were checked against the database, or if there are none.
        private var isChecked: Bool

        init(_ writer: StreamRowWriter) {
            self.writer = writer
            isChecked = writer.rules.isEmpty
            reconnector = Reconnector(
                first: .milliseconds(200), logger: writer.logger,
                lost: "Streams that end are not written into the database for now",
                regained: "Streams that end are written into the database again.")
        }

        mutating func runUntilStopped() {
            while true {
                if !isChecked { checkRules() }
                writer.mailbox.wait(until: isChecked ? nil : .now + Self.checkInterval)
                let mail = writer.mailbox.takeMail { mail in
                    defer { mail.jobs = [] }
                    return mail
                }
                for job in mail.jobs { performJob(job) }
                if mail.isStopping { return }
            }
        }

        /// The pause between two attempts to reach a database that is away at the start.
        private static let checkInterval = Duration.seconds(1)

        /// Logs the statements that do not fit the database, and goes on: other streams' ends can be written, and the
        /// operator may correct the database while the hub runs.
        private mutating func checkRules() {
            guard reconnector.isDue else { return }
            do {
                let connection = try openConnection()
                for rule in writer.rules {
                    do { try rule.checkStatement(as: rule.role, on: connection) } catch let error as PostgresError
                        where error.kind == .server
                    {
                        writer.logger.error(
                            "\(rule.setting) does not fit the database, so these ends of streams are refused: \(error.message)"
                        )
                    }
                }
                isChecked = true
            } catch {
                connection = nil
                reconnector.connectionFailed(error, isStopping: writer.stopSignal.deadline != nil)
            }
        }

        private mutating func performJob(_ job: Job) {
            let writer = writer
            switch job {
            case .commit(let commit, let asked, let answer):
                let outcome = commitOutcome { try writer.commitRow(commit, on: $0) }
                countOutcome(outcome, after: .now - asked)
                answer(outcome)
            case .settle(let key, let answer):
                // A failure says nothing about the attempt: its transaction may still hold the lock that this one waits
                // for.
                let outcome = commitOutcome { connection in
                    do { return try writer.settleCommit(key, on: connection) } catch let error as PostgresError
                        where error.kind == .server && !connection.isBroken
                    {
                        _ = try connection.runScript("rollback")
                        return .unknown
                    }
                }
                answer(outcome)
            case .forget(let key):
                _ = commitOutcome { connection in
                    _ = try connection.query(StreamSQL.forgetCommit, key.columns)
                    return .unknown
                }
            }
        }

        private mutating func countOutcome(_ outcome: StreamCommitOutcome, after time: Duration) {
            switch outcome {
            case .committed: statistics.committed += 1
            case .refused: statistics.refused += 1
            case .unknown: statistics.unknown += 1
            }
            statistics.time.recordDuration(nanoseconds: Int64(time / .nanoseconds(1)))
            writer.published.value = statistics
        }

        private mutating func commitOutcome(
            of body: (PostgresConnection) throws -> StreamCommitOutcome
        ) -> StreamCommitOutcome {
            do {
                let connection = try openConnection()
                do { return try body(connection) } catch let error as PostgresError where error.kind == .server {
                    guard !connection.isBroken else { throw error }
                    _ = try connection.runScript("rollback")
                    return error.passes ? .unknown : .refused(error.message)
                }
            } catch {
                connection = nil
                reconnector.connectionFailed(error, isStopping: writer.stopSignal.deadline != nil)
                return .unknown
            }
        }

        private mutating func openConnection() throws -> PostgresConnection {
            if let connection, !connection.isBroken { return connection }
            guard reconnector.isDue else { throw PostgresError(.connection, "the database is away") }
            let opened = try PostgresConnection(
                ConnectionOptions(conninfo: writer.conninfo), waiter: PlainWaiter(until: writer.stopSignal),
                logger: writer.logger, within: .seconds(5))
            try opened.runScript(StreamSQL.streamSession)
            try Primary.demandPrimary(on: opened)
            try RoostSchema.demandCurrent(on: opened)
            _ = try opened.query(StreamSQL.pruneCommits)
            reconnector.connectionOpened()
            connection = opened
            return opened
        }
    }

    // MARK: Transactions

    /// - Throws: `PostgresError`; if its kind is `server`, nothing is committed.
    private func commitRow(_ commit: StreamCommit, on connection: PostgresConnection) throws -> StreamCommitOutcome {
        guard let content = commit.text else {
            return .refused("the text has the character U+0000, which no text of Postgres has")
        }
        try connection.runScript("begin")
        _ = try connection.query(StreamSQL.beginCommit, commit.key.columns)
        _ = try connection.query(
            StreamSQL.becomeBearer, [commit.bearer.role.text, String(decoding: commit.bearer.claims, as: UTF8.self)])
        let rows = try connection.query(
            commit.rule.wrappedStatement,
            [
                commit.name.text, content, commit.status.rawValue, Self.timestampText(commit.startedAt),
                Self.timestampText(commit.endedAt),
            ])
        let row = rows.count > 0 ? rows.bytes(0, 0).map(Array.init) : nil
        try connection.runScript("set local role none")
        _ = try connection.query(
            StreamSQL.endCommit, commit.key.columns + [row.map { String(decoding: $0, as: UTF8.self) }])
        try connection.runScript("commit")
        return .committed(row: row)
    }

    private func settleCommit(_ key: StreamCommitKey, on connection: PostgresConnection) throws -> StreamCommitOutcome {
        let isThere = try connection.query(StreamSQL.settleCommit, key.columns).flag(0, 0)
        guard isThere else { return .refused(Self.interruption) }
        let rows = try connection.query(StreamSQL.commitResult, key.columns)
        guard !rows.flag(0, 0) else { return .refused(Self.interruption) }
        return .committed(row: rows.bytes(0, 1).map(Array.init))
    }

    private static let interruption = "the close was interrupted; close the stream again"

    private static func timestampText(_ milliseconds: Int64) -> String {
        CivilTime(millisecondsSince1970: Int(milliseconds)).timestamp
    }
}

extension CivilTime {
    /// In the format of a timestamptz.
    var timestamp: String { "\(day) \(clock).\(String(1000 + millisecond).dropFirst())Z" }
}

extension PostgresError {
    /// Whether the error is about the server's state and not about the statement: connections and resources (classes 08
    /// and 53), deadlocks (40), a server that stops, or an operator that ends sessions (57P).
    fileprivate var passes: Bool {
        ["08", "40", "53", "57P"].contains { sqlState?.hasPrefix($0) ?? false }
    }
}

extension StreamCommitKey {
    fileprivate var columns: [String?] { [String(Int64(bitPattern: id.number)), String(attempt)] }
}

extension StreamCommit {
    /// The parameter's text; binary content in the hexadecimal format of `bytea`. Nil if Postgres cannot store the
    /// text.
    fileprivate var text: String? {
        guard isBinary else {
            return content.contains(0) ? nil : String(decoding: content, as: UTF8.self)
        }
        var out = Array("\\x".utf8)
        out.reserveCapacity(content.count * 2 + 2)
        let digits = Array("0123456789abcdef".utf8)
        for byte in content {
            out.append(digits[Int(byte >> 4)])
            out.append(digits[Int(byte & 15)])
        }
        return String(decoding: out, as: UTF8.self)
    }
}
