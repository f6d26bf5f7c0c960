import ChangeFeed
import Foundation
import Hub
import Matching
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Figures, not a test: ROOST_BENCH=1.
    @Suite(.enabled(if: getenv("ROOST_BENCH") != nil)) struct PolicyBenchmark {
        private let stage: PolicyStage
        private let table: Table

        init() throws {
            stage = try PolicyStage(
                """
                create table participants (room uuid, who uuid, primary key (room, who));
                create table messages (id bigint primary key, room uuid, sender uuid, body text, sent_at timestamptz);
                insert into participants select md5('r' || r)::uuid, md5('u' || u)::uuid
                    from generate_series(1, 256) r, generate_series(1, 500) u where (u + r) % 2 = 0;
                alter table participants enable row level security; alter table messages enable row level security;
                create policy p on participants to policy_user using (who = auth.uid());
                create policy m on messages to policy_user using (exists (
                    select from participants p where p.room = messages.room and p.who = auth.uid()));
                grant select on messages, participants to policy_user; analyze;
                insert into messages select n, md5('r' || n)::uuid, md5('u' || n)::uuid, repeat('word ', 20), now()
                    from generate_series(1, 256) n;
                """)
            table = try stage.table("messages")
        }

        private func users(_ count: Int) throws -> [PolicyUser] {
            let ids = try stage.session.queryRows("select md5('u' || u)::uuid from generate_series(1, \(count)) u")
            return ids.map {
                PolicyUser(
                    sub: $0[0] ?? "",
                    extra: #","aud":"authenticated","exp":1999999999,"app_metadata":{"provider":"email"}"#)
            }
        }

        /// CPU seconds that the session which asks policies has used: elapsed time says little on a shared machine.
        private func backendSeconds() throws -> Double {
            let pid = try stage.session.queryRows(
                """
                select pid from pg_stat_activity
                where application_name = 'roost policies' and datname = current_database()
                """
            )
            guard let pid = pid.first?[0] else { return 0 }
            let fields = try String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8).split(separator: " ")
            return (Double(fields[13]) ?? 0) / 100 + (Double(fields[14]) ?? 0) / 100
        }

        @Test(arguments: [(256, 50, 256), (256, 50, 20), (1, 500, 1), (100, 100, 100), (1, 1, 1)])
        func speed(rows: Int, principals: Int, rooms: Int) throws {
            let all = try stage.records(of: table)
            let records = (0..<rows).map { all[$0 % rooms] }
            let users = try users(principals)
            var times: [Double] = []
            var before = 0.0
            let rounds = 41
            for round in 0...rounds {
                // The first one creates the function and plans it.
                if round == 1 { before = try backendSeconds() }
                let began = ContinuousClock.now
                let answer = try stage.ask(table, records: records, users: users)
                if round > 0 { times.append((ContinuousClock.now - began) / .milliseconds(1)) }
                #expect(answer.problems == [])
            }
            times.sort()
            let cpu = try (backendSeconds() - before) * 1000 / Double(rounds)
            let decisions = Double(rows * principals)
            print(
                "\(principals) principals x \(rows) rows (\(rooms) different):",
                "median \(times[rounds / 2]) ms, best \(times[0]) ms,",
                "\(Int(decisions / times[rounds / 2] * 1000)) decisions/s (best \(Int(decisions / times[0] * 1000))),",
                "CPU of the session \(cpu) ms")
        }
    }
}
