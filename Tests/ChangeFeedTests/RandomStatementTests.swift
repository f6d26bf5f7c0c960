import Administration
import ChangeFeed
import Postgres
import TestSupport
import Testing

@testable import PostgresFixtures

extension FeedTests {
    @Suite struct RandomStatementTests {
        /// Random statements under random triggers of the application; every version of a row is another, so the replay
        /// tells whether each found what the last had left.
        @Test func anyStatementsAnyTriggers() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                """
                create sequence version;
                create function next() returns trigger language plpgsql as
                    $$ begin new.v := nextval('version'); return new; end $$;
                """)
            let triggers = [
                StatementTests.trigger("z_touch", "after insert", "update t set note = 'seen' where id = new.id"),
                StatementTests.trigger("a_count", "after insert", "update t set n = n + 1 where id = new.n"),
                StatementTests.trigger(
                    "b_reset", "after update", "if new.n > 5 then update t set n = 0 where id = new.id; end if"),
                StatementTests.trigger(
                    "drop", "after insert or update", "if new.n = 4 then delete from t where id = new.id; end if"),
                StatementTests.trigger("replace", "before insert", "delete from t where id = new.id"),
                StatementTests.trigger("before", "before insert", "update t set n = n + 1 where id = new.n"),
                StatementTests.trigger("skip", "before insert", "if new.n = 3 then return null; end if"),
                StatementTests.trigger(
                    "zs", "after insert or update", "update t set note = 'all' where n = 2", each: "statement"),
                StatementTests.trigger(
                    "at_end", "after delete", "update t set n = n + 1 where id = 1", each: "statement"),
                StatementTests.trigger(
                    "revive", "after delete", "insert into t values (old.id, 1, 'back') on conflict do nothing"),
            ]
            try database.withFeed { feed, collector in
                let session = try database.session()
                for seed in 1...20 {
                    var random = SeededGenerator(seed: UInt64(seed))
                    try session.runScript(
                        """
                        drop table if exists t cascade;
                        create table t (id int primary key, n int, note text, v bigint);
                        create trigger zz_next before insert or update on t for each row execute function next();
                        """)
                    try Watcher.watch("t", conninfo: database.conninfo)
                    for trigger in triggers where random.below(3) == 0 { try session.runScript(trigger) }
                    let start = collector.count
                    for _ in 0..<12 {
                        try session.runScript("begin")
                        for statement in Self.statements(&random) { run(statement, on: session) }
                        try session.runScript("commit")
                    }
                    try database.settle(feed, collector)
                    let replay = ChangeReplay([], key: "id", Array(collector.seen[start...]))
                    #expect(replay.faults == [], "seed \(seed)")
                    #expect(replay.rows == (try database.rows("select row_to_json(t)::text from t")), "seed \(seed)")
                }
            }
        }

        private static func statements(_ random: inout SeededGenerator) -> [String] {
            let numbers = (0..<8).map { _ in random.below(6) + 1 }
            let texts = [
                "insert into t values (\(numbers[0]), \(numbers[1])) on conflict do nothing",
                "insert into t values (1, \(numbers[0])), (3, \(numbers[1])), (5, \(numbers[2])) "
                    + "on conflict (id) do update set n = excluded.n",
                "update t set n = \(numbers[0]) where id in (\(numbers[1]), \(numbers[2]))", "update t set n = n + 1",
                "delete from t where id = \(numbers[3])", "update t set id = \(numbers[4]) where id = \(numbers[5])",
                "with d as (delete from t where id = \(numbers[6]) returning *) "
                    + "insert into t select id + 1, n from d on conflict do nothing",
            ]
            return (0...random.below(3)).map { _ in texts[random.below(texts.count)] }
        }

        /// Keys that collide take the statement back, which is a case too.
        private func run(_ script: String, on session: DatabaseSession) {
            do {
                try session.runScript("savepoint before")
                try session.runScript(script)
            } catch {
                do { try session.runScript("rollback to before") } catch { Issue.record(error) }
                let isExpected = ["duplicate key", "a second time", "already modified"].contains {
                    "\(error)".contains($0)
                }
                #expect(isExpected, "\(error): \(script)")
            }
        }
    }
}
