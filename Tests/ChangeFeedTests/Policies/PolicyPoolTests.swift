import ChangeFeed
import Hub
import Postgres
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Policies that are asked on several sessions at once say what they say on one.
    @Suite struct PolicyPoolTests {
        private let stage: PolicyStage
        private let helpers: [PolicyHelper]

        init() throws {
            stage = try PolicyStage(
                """
                create table notes (id int, owner text);
                insert into notes select n, 'user ' || n from generate_series(1, 9) n;
                alter table notes enable row level security;
                create policy own on notes for select using (
                    owner = current_setting('request.jwt.claim.sub') and (owner <> 'user 7' or 1 / (id - 7) = 0));
                grant select on notes to policy_user;
                """)
            let database = stage.database
            helpers = (0..<2).map { _ in PolicyHelper(conninfo: database.conninfo, logger: .silent) }
        }

        private func pool() -> PolicyPool {
            PolicyPool(PolicyEngine(conninfo: stage.database.conninfo, logger: .silent), helpers: helpers)
        }

        /// Users 0 to `count`, each about all rows.
        private func questions(users count: Int) throws -> [PolicyQuestion] {
            let table = try stage.table("notes")
            let records = try stage.records(of: table)
            let subjects = (0..<count).map { number in
                PolicyQuestion.Subject(
                    claims: SubscriberStage.claims("user \(number % 12)", role: "policy_user"),
                    rows: Array(records.indices))
            }
            // A role that may read nothing is asked along with the other.
            return ["policy_user", "nobody"].map { role in
                PolicyQuestion(
                    table: table, command: .select, role: role, rows: records, subjects: subjects,
                    wantsTablesRead: true,
                    userKey: "pg_catalog.current_setting('request.jwt.claim.sub')")
            }
        }

        private func sessions() throws -> Int {
            try stage.session.queryRows(
                """
                select from pg_stat_activity
                where datname = current_database() and application_name = 'roost policies' and state is not null
                """
            ).count
        }

        @Test func saysWhatOneSessionSays() throws {
            defer { for helper in helpers { helper.stop() } }
            let questions = try questions(users: 150)
            var pool = pool()
            let answers = try pool.answers(to: questions, version: "1")
            #expect(try sessions() == 3)
            let expected = try stage.ask(questions)
            for (answer, one) in zip(answers, expected) {
                #expect(answer.visible == one.visible && answer.keys == one.keys)
                #expect(answer.failed == one.failed && answer.undecided == one.undecided)
                #expect(answer.isDenied == one.isDenied && answer.isUnrestricted == one.isUnrestricted)
                #expect(answer.tablesRead == one.tablesRead && answer.columnsRead == one.columnsRead)
            }
            #expect(answers[0].visible[113] == [4] && answers[0].keys[113] == "user 5", "one of the second hand")
            #expect(answers[0].failed.count == 12 && answers[0].failed.contains(7 + 11 * 12), "also of the last hand")
            #expect(answers[1].isDenied)
        }

        @Test func fewSubjectsAreOneSessionsWork() throws {
            defer { for helper in helpers { helper.stop() } }
            var pool = pool()
            _ = try pool.answers(to: Array(questions(users: 2 * PolicyPool.leastSubjects - 1).prefix(1)), version: "1")
            #expect(try sessions() == 1)
        }

        /// A session that was lost is replaced; where none is to be had, nothing is decided.
        @Test func sessionsThatAreLost() throws {
            defer { for helper in helpers { helper.stop() } }
            let questions = try questions(users: 150)
            var pool = pool()
            let before = try pool.answers(to: questions, version: "1")
            let end = """
                select pg_terminate_backend(pid, 10000) from pg_stat_activity
                where datname = current_database() and application_name = 'roost policies'
                """
            _ = try stage.session.queryRows(end)
            #expect(try pool.answers(to: questions, version: "1").map(\.visible) == before.map(\.visible))
        }
    }
}
