import Administration
import ChangeFeed
import Foundation
import Hub
import Postgres
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Whatever SQL writes: replayed, the changes make the table, and each row's come in the order in which they happened.
    @Suite struct StatementTests {
        struct Statement: Sendable {
            let testDescription: String
            /// The first version that has it, as `server_version_num`.
            var since = 0
            /// Beside the table t (id int primary key, n int, note text), which has the rows 1 to 4.
            var setUp = ""
            let script: String
            /// The operations in order, as `I`, `U`, `D`; nil where only the outcome counts.
            var operations: String?
            /// The column that tells rows apart; nil where the whole row does.
            var key: String? = "id"
        }

        static func trigger(_ name: String, _ event: String, _ body: String, each: String = "row") -> String {
            let result = event.hasPrefix("before") && each == "row" ? "new" : "null"
            return """
                create or replace function \(name)() returns trigger language plpgsql as $f$
                begin if pg_trigger_depth() < 5 then \(body); end if; return \(result); end $f$;
                create trigger "\(name)" \(event) on t for each \(each) execute function \(name)();
                """
        }

        static let table: [Statement] = [
            Statement(
                testDescription: "insert select", script: "insert into t select i, i, 'x' from generate_series(5, 9) i",
                operations: "IIIII"),
            Statement(
                testDescription: "several rows", script: "insert into t values (5, 5, ''), (6, 6, null)",
                operations: "II"),
            Statement(
                testDescription: "on conflict update",
                script: "insert into t values (4, 9), (5, 9) on conflict (id) do update set n = excluded.n + t.n",
                operations: "UI"),
            Statement(
                testDescription: "on conflict nothing",
                script: "insert into t values (4, 9), (5, 9) on conflict do nothing",
                operations: "I"),
            Statement(
                testDescription: "merge", since: 150_000,
                script: """
                    merge into t using (values (1, 7), (2, 7), (8, 7)) s (id, n) on t.id = s.id
                    when matched and t.id = 1 then delete when matched then update set n = s.n
                    when not matched then insert values (s.id, s.n)
                    """),
            Statement(
                testDescription: "update from",
                script: "update t set n = s.n from (values (1, 10), (2, 20)) s (id, n) where s.id = t.id",
                operations: "UU"),
            Statement(testDescription: "keys that move", script: "update t set id = id + 10", operations: "UUUU"),
            Statement(
                testDescription: "keys that follow each other",
                script:
                    "begin; update t set id = 9 where id = 1; update t set id = 1 where id = 2; insert into t values (2); commit",
                operations: "UUI"),
            Statement(
                testDescription: "delete using",
                script: "delete from t using (values (1), (3)) s (id) where s.id = t.id", operations: "DD"),
            Statement(
                testDescription: "one statement, several writes",
                script: """
                    with gone as (delete from t where id = 1 returning *), other as (update t set n = 0 where id = 2)
                    insert into t select id, 100, 'again' from gone
                    """),
            Statement(testDescription: "copy", script: "copy t (id) from program 'seq 5 9'", operations: "IIIII"),
            Statement(
                testDescription: "a generated and an identity column",
                setUp: """
                    alter table t add twice int generated always as (n * 2) stored;
                    alter table t add serial int generated always as identity;
                    """, script: "insert into t (id, n) values (5, 5); update t set n = 7 where id = 5",
                operations: "IU"),
            Statement(
                testDescription: "a trigger changes rows",
                setUp: trigger("change", "before insert or update", "new.note := 'set'"),
                script: "insert into t values (5, 5); update t set n = 6", operations: "IUUUUU"),
            Statement(
                testDescription: "a trigger suppresses rows",
                setUp: trigger("skip", "before insert or update", "if new.id % 2 = 0 then return null; end if"),
                script: "insert into t values (5, 5), (6, 6); update t set n = 0", operations: "IUUU"),
            Statement(
                testDescription: "savepoints",
                script: """
                    begin; update t set n = 0; savepoint a; delete from t; rollback to a; savepoint b;
                    insert into t values (7); release b; update t set n = 1 where id = 7; commit
                    """, operations: "UUUUIU"),
            Statement(
                testDescription: "a function",
                script: """
                    do $$ begin insert into t values (5, 5);
                    begin delete from t; raise exception 'no'; exception when others then null; end;
                    update t set n = 6 where id = 5; end $$
                    """, operations: "IU"),
            Statement(
                testDescription: "a rule",
                setUp: "create rule soft as on delete to t do instead update t set note = 'gone' where id = old.id",
                script: "delete from t where id < 3", operations: "UU"),
            Statement(
                testDescription: "a view's trigger",
                setUp: """
                    create view v as select id, n from t;
                    create or replace function write() returns trigger language plpgsql as $f$
                    begin insert into t values (new.id, new.n, 'view'); return new; end $f$;
                    create trigger write instead of insert on v for each row execute function write();
                    """, script: "insert into v values (5, 5), (6, 6)", operations: "II"),
            Statement(
                testDescription: "cascades in one table",
                setUp: "alter table t add parent int references t on delete cascade on update cascade",
                script:
                    "update t set parent = id - 1 where id > 1; update t set id = 20 where id = 2; delete from t where id = 1"
            ),
            // The application's triggers write the same table.
            Statement(
                testDescription: "an AFTER trigger updates the row",
                setUp: trigger("a_touch", "after insert", "update t set note = 'seen' where id = new.id"),
                script: "insert into t values (5, 5), (6, 6)", operations: "IIUU"),
            Statement(
                testDescription: "AFTER triggers write the one row again and again",
                setUp: trigger(
                    "a_touch", "after insert",
                    "update t set note = 'a' where id = new.id; update t set note = 'b' where id = new.id")
                    + trigger("z_drop", "after insert", "delete from t where id = new.id and n = 6"),
                script: "insert into t values (5, 5); insert into t values (6, 6)", operations: "IUUIUUD"),
            Statement(
                testDescription: "an AFTER trigger writes the one row and another",
                setUp: trigger(
                    "a_touch", "after insert",
                    "update t set note = 'a' where id = new.id; update t set n = 0 where id = 1"),
                script: "insert into t values (5, 5)"),
            Statement(
                testDescription: "an AFTER trigger deletes the row",
                setUp: trigger("z_drop", "after insert or update", "delete from t where id = new.id and n > 5"),
                script: "insert into t values (5, 6), (7, 1); update t set n = 8 where id = 7", operations: "IIDUD"),
            Statement(
                testDescription: "a counter of replies",
                setUp: trigger("counts", "after insert", "update t set n = n + 1 where id = new.n"),
                script: "insert into t values (5, 1), (6, 5), (7, 5)"),
            Statement(
                testDescription: "a counter before",
                setUp: trigger(
                    "counts", "before insert", "update t set note = coalesce(note, '') || '+' where id = new.n"),
                script: "insert into t values (5, 1), (6, 5), (7, 5)", operations: "UIIIUU"),
            Statement(
                testDescription: "an upsert by trigger",
                setUp: trigger("replace", "before insert", "delete from t where id = new.id"),
                script: "insert into t values (1, 9), (5, 5), (5, 6)", operations: "DIIDI"),
            Statement(
                testDescription: "what was deleted comes back",
                setUp: trigger("revive", "after delete", "insert into t values (old.id, 0, 'back')"),
                script: "delete from t where id < 3", operations: "DDII"),
            Statement(
                testDescription: "what was set is set back",
                setUp: trigger(
                    "revert", "after update", "if new.n > 50 then update t set n = old.n where id = new.id; end if"),
                script: "update t set n = 99 where id = 1", operations: "UU"),
            Statement(
                testDescription: "triggers within triggers",
                setUp: trigger("deep", "after insert or update", "update t set n = n + 1 where id = new.id and n < 8")
                    + trigger("Z_deep", "after update", "if new.n = 8 then delete from t where id = new.id; end if"),
                script: "insert into t values (5, 5)", operations: "IUUUD"),
            Statement(
                testDescription: "an upsert with triggers for statements",
                setUp: trigger(
                    "touch", "after insert or update", "update t set note = 'seen' where id = new.id and note is null")
                    + trigger(
                        "audit", "after insert or update", "update t set n = -1 where id = 4 and n <> -1",
                        each: "statement"),
                script: "insert into t values (1, 9), (5, 5), (4, 7) on conflict (id) do update set n = excluded.n"),
            Statement(
                testDescription: "triggers and savepoints",
                setUp: trigger("touch", "after insert", "update t set note = 'seen' where id = new.id"),
                script: """
                    begin; insert into t values (5); savepoint a; insert into t values (6); rollback to a;
                    insert into t values (6, 6); delete from t where id = 5; commit
                    """, operations: "IUIUD"),
            Statement(
                testDescription: "a key is freed and taken again, after another statement of the message",
                setUp: trigger("z_touch", "after insert", "update t set note = 'seen' where id = new.id"),
                script: """
                    do $$ begin insert into t values (5, 5);
                    with gone as (delete from t where id = 5 returning *) insert into t select id, 7 from gone; end $$
                    """, operations: "IUDIU"),
            Statement(
                testDescription: "an upsert by trigger that changes nothing",
                setUp: trigger("replace", "before insert", "delete from t where id = new.id"),
                script: "insert into t values (1, 1)", operations: "DI"),
            Statement(
                testDescription: "a trigger that takes away what was inserted",
                setUp: trigger("drop", "after insert", "delete from t where id = new.id"),
                script: "insert into t values (5, 5)", operations: "ID"),
            Statement(
                testDescription: "what was deleted comes back, by a unique index",
                setUp: "alter table t drop constraint t_pkey, alter id set not null; create unique index on t (id);"
                    + trigger("revive", "after delete", "insert into t values (old.id, 0, 'back')"),
                script: "delete from t where id < 3", operations: "DDII"),
            Statement(
                testDescription: "no primary key",
                setUp: "alter table t drop constraint t_pkey;"
                    + trigger("touch", "after insert", "update t set note = 'seen' where id = new.id")
                    + trigger("drop", "after update", "delete from t where id = new.id and n = 6"),
                script: "insert into t values (5, 5), (6, 6)", operations: "IIUUD", key: nil),
        ]

        @Test func replayed() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared("select 1")
            let version = try database.serverVersion()
            try database.withFeed { feed, collector in
                for statement in Self.table where statement.since <= version {
                    try database.run(
                        """
                        drop table if exists t cascade; create table t (id int primary key, n int, note text);
                        insert into t select i, i from generate_series(1, 4) i
                        """)
                    try Watcher.watch("t", conninfo: database.conninfo)
                    try database.run(statement.setUp)
                    let before = try database.rows("select row_to_json(t)::text from t")
                    let start = collector.count
                    try database.run(statement.script)
                    try database.settle(feed, collector)
                    let seen = Array(collector.seen[start...])
                    let name = Comment(rawValue: statement.testDescription)
                    if let operations = statement.operations {
                        #expect(String(seen.compactMap(\.change.operation.rawValue.first)) == operations, name)
                    }
                    let replay = ChangeReplay(before, key: statement.key, seen)
                    #expect(replay.faults == [], name)
                    #expect(replay.rows == (try database.rows("select row_to_json(t)::text from t")), name)
                }
            }
        }

        /// A BEFORE trigger of the new partition skips a row: it is gone, and its neighbours keep their own pasts.
        @Test func moveBetweenPartitionsThatIsSkipped() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                """
                create table t (id int, part int, primary key (id, part)) partition by list (part);
                create table t1 partition of t for values in (1); create table t2 partition of t for values in (2);
                create function skip() returns trigger language plpgsql as
                    $$ begin if new.id = 2 then return null; end if; return new; end $$;
                create trigger skip before insert on t2 for each row execute function skip();
                """, watching: "t")
            let lines = try database.changes(
                of:
                    "insert into t select i, 1 from generate_series(1, 3) i; update t set part = 2; update t set id = -id",
                count: 8)
            #expect(
                lines.dropFirst(3) == [
                    #"DELETE {"id":2,"part":1}"#, #"UPDATE {"id":1,"part":1} -> {"id":1,"part":2}"#,
                    #"UPDATE {"id":3,"part":1} -> {"id":3,"part":2}"#,
                    #"UPDATE {"id":1,"part":2} -> {"id":-1,"part":2}"#,
                    #"UPDATE {"id":3,"part":2} -> {"id":-3,"part":2}"#,
                ])
        }

        @Test func inheritance() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (id int, n int)", watching: "t")
            // A table with children is not watched by triggers; one may come later.
            try database.run("create table child (extra text) inherits (t)")
            let lines = try database.changes(
                of:
                    "insert into t values (1, 1); insert into child values (2, 2, 'x'); update t set n = 5; delete from t",
                count: 5)
            #expect(lines.prefix(1) == [#"INSERT {"id":1,"n":1}"#])
            #expect(Set(lines.dropFirst().prefix(2)).contains(#"UPDATE {"id":2,"n":2} -> {"id":2,"n":5}"#))
            #expect(lines.suffix(2).allSatisfy { $0.hasPrefix("DELETE") })
        }

        /// As documented: nobody is told of the rows.
        @Test func truncate() throws {
            let lines = try PostgresCluster.shared.migratedDatabase().prepared("create table t (id int)", watching: "t")
                .changes(of: "insert into t values (1); truncate t; insert into t values (2)", count: 2)
            #expect(lines == [#"INSERT {"id":1}"#, #"INSERT {"id":2}"#])
        }

        /// JSON of them would be over 1 GB.
        @Test func rowsFarTooLargeForJSON() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (id int, b bytea, c text, n int)", watching: "t")
            try database.withFeed { feed, collector in
                try database.run(
                    """
                    alter table t alter b set storage external;
                    insert into t values (1, decode(repeat('00', 1000), 'hex'), repeat(E'\\x01', 180000000), null);
                    insert into t values (2);
                    update t set n = 5 where id = 1; delete from t where id = 1;
                    insert into t values (3, null, repeat('x', 900000), 3);
                    """)
                try eventually("five changes", within: .seconds(120)) { collector.count >= 5 }
                let seen = collector.seen
                #expect(seen.map(\.change.isReduced) == [true, false, true, true, false])
                #expect(seen[0].record == #"{ "id" : 1, "n" : null }"#)
                #expect(seen[2].record == #"{ "id" : 1, "n" : 5 }"# && seen[2].old == seen[0].record)
                #expect(seen[3].old == #"{ "id" : 1, "n" : 5 }"#)
                #expect(seen[4].record?.utf8.count ?? 0 > 900_000)
            }
        }
    }
}
