import Logging
import Stores
import Streams
import Synchronization
import Testing

@testable import PostgresFixtures

extension StoreTests {
    /// Rows that are committed with closes, in a real Postgres.
    @Suite struct StreamRowWriterTests {
        private let database: Database
        private let writer: StreamRowWriter
        private static let rule = CloseRule(
            pattern: nil, statement: "insert into reply (name, body) values ($1, $2) returning id, body")
        private static let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

        init() throws {
            database = try PostgresCluster.shared.database()
            try database.createClientRoles()
            _ = try database.prepared(
                """
                create table reply (id serial primary key, name text not null, body text check (body <> 'no'));
                grant select, insert on reply to authenticated;
                grant usage on sequence reply_id_seq to authenticated;
                """)
            writer = StreamRowWriter(conninfo: database.conninfo, rules: [Self.rule], logger: Self.quiet)
            writer.start()
        }

        private static func key(_ attempt: Int) -> StreamCommitKey {
            StreamCommitKey(id: StreamID(.max - 1), attempt: attempt)
        }

        /// Waits for an answer, and gives up after ten seconds.
        private func outcome(
            of ask: (@escaping @Sendable (StreamCommitOutcome) -> Void) -> Void
        ) throws -> StreamCommitOutcome {
            let answer = AnswerBox()
            ask { answer.value = $0 }
            try eventually("an answer") { answer.value != nil }
            return try #require(answer.value)
        }

        private func commit(_ body: String, attempt: Int) throws -> StreamCommitOutcome {
            let commit = StreamCommit(
                key: Self.key(attempt), name: try #require(StreamName("reply/1")), content: Array(body.utf8),
                isBinary: false, status: .complete, startedAt: 0, endedAt: 1_700_000_000_123,
                bearer: StreamBearer(role: "authenticated", claims: Array(#"{"sub":"ann"}"#.utf8)),
                rule: Self.rule)
            return try outcome { writer.commitEnd(commit, answer: $0) }
        }

        private func settle(_ attempt: Int) throws -> StreamCommitOutcome {
            try outcome { writer.settleAttempt(Self.key(attempt), answer: $0) }
        }

        private func bodies() throws -> [[String?]] {
            try database.session().queryRows("select body from reply order by id")
        }

        @Test func whatIsCommittedStaysSo() throws {
            let row = Array(#"{"id": 1, "body": "all"}"#.utf8)
            #expect(try commit("all", attempt: 1) == .committed(row: row))
            #expect(try settle(1) == .committed(row: row))
            #expect(try bodies() == [["all"]])
            writer.forgetAttempt(Self.key(1))
            writer.stop()
            #expect(try database.session().queryRows("select * from roost.stream_commit").isEmpty)
        }

        @Test func whatWasRefusedLeavesNothing() throws {
            guard case .refused(let sentence) = try commit("no", attempt: 1) else {
                Issue.record("it was to be refused")
                return
            }
            #expect(sentence.contains("reply_body_check"))
            #expect(try bodies().isEmpty)
            #expect(try commit("yes", attempt: 2) == .committed(row: Array(#"{"id": 2, "body": "yes"}"#.utf8)))
            writer.stop()
        }

        /// Whoever asks decides: what comes later comes too late.
        @Test func whatWasGivenUpIsNeverCommitted() throws {
            guard case .refused = try settle(1) else {
                Issue.record("nothing was there")
                return
            }
            guard case .refused = try commit("late", attempt: 1) else {
                Issue.record("it was given up")
                return
            }
            #expect(try bodies().isEmpty)
            writer.stop()
        }

        /// A hub was killed, and Postgres is still busy with its transaction.
        @Test(arguments: [true, false]) func whatIsUnderWayIsWaitedFor(_ commits: Bool) throws {
            let old = try database.session()
            try old.runScript(
                """
                begin;
                insert into roost.stream_commit (stream, attempt) values (-2, 1);
                insert into reply (name, body) values ('reply/1', 'old');
                update roost.stream_commit set result = '{"id":1}' where stream = -2;
                """)
            let answer = AnswerBox()
            writer.settleAttempt(Self.key(1)) { answer.value = $0 }
            try eventually("an answer") {
                try database.session().queryRows(
                    "select from pg_stat_activity where application_name = 'roost streams' and wait_event_type = 'Lock'"
                ).count == 1
            }
            #expect(answer.value == nil)
            try old.runScript(commits ? "commit" : "rollback")
            try eventually("an answer") { answer.value != nil }
            if commits {
                #expect(answer.value == .committed(row: Array(#"{"id": 1}"#.utf8)))
            } else {
                guard case .refused? = answer.value else {
                    Issue.record("it was rolled back: \(String(describing: answer.value))")
                    return
                }
            }
            writer.stop()
        }

        @Test func withoutADatabaseNothingIsKnown() throws {
            let writer = StreamRowWriter(
                conninfo: "host=/nowhere dbname=x", rules: [Self.rule], logger: Self.quiet)
            writer.start()
            #expect(try outcome { writer.settleAttempt(Self.key(1), answer: $0) } == .unknown)
            writer.stop()
            self.writer.stop()
        }
    }
}

private final class AnswerBox: Sendable {
    private let state = Mutex<StreamCommitOutcome?>(nil)
    var value: StreamCommitOutcome? {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
