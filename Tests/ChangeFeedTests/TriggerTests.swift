import ChangeFeed
import Foundation
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What statements write to the outbox, and how it arrives.
    @Suite struct TriggerTests {
        let bare: Database

        init() throws { bare = try PostgresCluster.shared.database() }

        @Test func insertUpdateDelete() throws {
            let lines = try bare.prepared("create table t (id int primary key, t text)", watching: "t").changes(
                of: """
                    insert into t values (1, 'a'), (2, null);
                    update t set t = 'b', id = 7 where id = 1;
                    delete from t where id = 2;
                    """, count: 4)
            #expect(
                lines == [
                    #"INSERT {"id":1,"t":"a"}"#, #"INSERT {"id":2,"t":null}"#,
                    #"UPDATE {"id":1,"t":"a"} -> {"id":7,"t":"b"}"#, #"DELETE {"id":2,"t":null}"#,
                ])
        }

        @Test func updatesArePairedInOrder() throws {
            let lines = try bare.prepared(
                "create table t (id int); insert into t select generate_series(1, 3000)", watching: "t"
            )
            .changes(of: "update t set id = -id", count: 3000)
            #expect(lines == (1...3000).map { #"UPDATE {"id":\#($0)} -> {"id":-\#($0)}"# })
        }

        @Test func nothingTouchedNothingWritten() throws {
            let database = try bare.prepared("create table t (id int)", watching: "t")
            let lines = try database.changes(
                of: """
                    insert into t select 1 where false; update t set id = 2; delete from t; truncate t;
                    insert into t values (9)
                    """, count: 1)
            #expect(lines == [#"INSERT {"id":9}"#])
        }

        @Test func upsertAndMerge() throws {
            let merge =
                try bare.serverVersion() >= 150_000
                ? """
                merge into t using (values (1, 7), (3, 7)) s (id, n) on t.id = s.id
                    when matched then delete when not matched then insert values (s.id, s.n)
                """ : "delete from t where id = 1; insert into t values (3, 7)"
            let lines = try bare.prepared("create table t (id int primary key, n int)", watching: "t").changes(
                of: """
                    insert into t values (1, 1);
                    insert into t values (1, 2), (2, 2) on conflict (id) do update set n = excluded.n;
                    insert into t values (1, 5) on conflict do nothing;
                    \(merge);
                    """, count: 5)
            #expect(
                Set(lines) == [
                    #"INSERT {"id":1,"n":1}"#, #"INSERT {"id":2,"n":2}"#, #"UPDATE {"id":1,"n":1} -> {"id":1,"n":2}"#,
                    #"INSERT {"id":3,"n":7}"#, #"DELETE {"id":1,"n":2}"#,
                ] && lines.count == 5)
        }

        @Test func copyAndLargeInsert() throws {
            let database = try bare.prepared("create table t (id int)", watching: "t")
            try database.withFeed { feed, collector in
                try database.run("copy t from program 'seq 5'")
                try database.run("insert into t select generate_series(1, 100000)")
                try eventually("all rows") { collector.count >= 100_005 }
                #expect(collector.lines == (Array(1...5) + Array(1...100_000)).map { #"INSERT {"id":\#($0)}"# })
                #expect(collector.largestBatch <= 256)
            }
        }

        @Test func cascades() throws {
            let lines = try bare.prepared(
                """
                create table p (id int primary key);
                create table c (id int primary key, p int references p on delete cascade on update cascade);
                insert into p values (1), (2); insert into c values (10, 1), (11, 1), (12, 2);
                """, watching: "c"
            ).changes(of: "update p set id = 5 where id = 1; delete from p", count: 5)
            #expect(
                lines == [
                    #"UPDATE {"id":10,"p":1} -> {"id":10,"p":5}"#, #"UPDATE {"id":11,"p":1} -> {"id":11,"p":5}"#,
                ] + lines.dropFirst(2))
            #expect(
                Set(lines.dropFirst(2)) == [
                    #"DELETE {"id":10,"p":5}"#, #"DELETE {"id":11,"p":5}"#, #"DELETE {"id":12,"p":2}"#,
                ])
        }

        @Test func oddTables() throws {
            let lines = try bare.prepared(
                """
                create table "Mixed Case" (
                    "a ""b\\" int, "Ünï" text, gen int generated always as ("a ""b\\" * 2) stored);
                create table dropped (a int, b int, c int);
                alter table dropped drop column b;
                """, watching: "\"Mixed Case\"", "dropped"
            ).changes(of: "insert into \"Mixed Case\" values (2, 'é'); insert into dropped values (1, 3)", count: 2)
            #expect(lines == [#"INSERT {"a \"b\\":2,"Ünï":"é","gen":4}"#, #"INSERT {"a":1,"c":3}"#])
        }

        @Test func partitions() throws {
            let database = try bare.prepared(
                """
                create table tree (id int, t text) partition by range (id);
                create table low partition of tree for values from (0) to (10);
                create table high (t text, id int);
                alter table tree attach partition high for values from (10) to (20);
                """, watching: "tree")
            try database.withFeed { feed, collector in
                try database.run(
                    """
                    insert into tree values (1, 'a'), (11, 'b'); insert into high values ('direct', 12);
                    update tree set id = id + 10 where id = 1; delete from low;
                    """)
                try eventually("four changes") { collector.count >= 4 }
                #expect(collector.seen.allSatisfy { $0.name == "tree" })
                #expect(
                    collector.lines.dropFirst(2) == [
                        #"INSERT {"t":"direct","id":12}"#, #"UPDATE {"id":1,"t":"a"} -> {"id":11,"t":"a"}"#,
                    ])
            }
        }

        @Test func anyWriterAnySettings() throws {
            let database = try bare.prepared(
                """
                create table t (at timestamptz, b bytea, i interval, f float8);
                do $$ begin create role writer login; exception when duplicate_object then null; end $$;
                grant insert on t to writer;
                """, watching: "t")
            let writer = Database(conninfo: database.conninfo.replacing("user=postgres", with: "user=writer"))
            let row = "('2026-01-01 12:00+02', '\\x01ff', '1 day 2 hours', 0.1::float8 + 0.2::float8)"
            let lines = try database.withFeed { feed, collector in
                try writer.run("insert into t values \(row)")
                try writer.run(
                    """
                    set "TimeZone" = 'Asia/Tokyo'; set bytea_output = 'escape'; set "IntervalStyle" = 'iso_8601';
                    set extra_float_digits = -5; set search_path = ''; insert into public.t values \(row)
                    """)
                try eventually("two rows") { collector.count == 2 }
                return collector.lines
            }
            #expect(lines[0] == lines[1])
            #expect(lines[0].contains("2026-01-01T10:00:00+00:00") && lines[0].contains(#""i":"1 day 02:00:00""#))
            #expect(lines[0].contains("0.30000000000000004") && lines[0].contains(#"\\x01ff"#))
        }

        @Test func rowsOverOneMebibyteAreReduced() throws {
            let database = try bare.prepared("create table t (id int, big text, j json, small text)", watching: "t")
            try database.withFeed { feed, collector in
                // {"id":1,"big":"…","j":null,"small":null}: 39 bytes around the text.
                try database.run(
                    """
                    insert into t values (1, repeat('x', 1048576 - 39)), (2, repeat('x', 1048576 - 38));
                    insert into t values (3, repeat('x', 2000000), '"\\u0000"', 's');
                    insert into t values (4, repeat('x', 2000000), '"\\ud800"', 's');
                    update t set big = 'short' where id = 2;
                    """)
                try eventually("five changes") { collector.count >= 5 }
                let seen = collector.seen
                #expect(seen.map(\.change.isReduced) == [false, true, true, true, true])
                #expect(seen[0].record?.utf8.count == 1_048_576)
                #expect(seen[2].record?.contains(#""id" : 3"#) ?? false)
                #expect(seen[2].record?.contains(#""small" : "s""#) ?? false)
            }
        }

        @Test("a writer never fails for a value without JSON: it is a text, and other rows are what they were")
        func valuesWithoutJSON() throws {
            let states = TypeWithoutJSON.states
            let lines = try bare.prepared(
                "\(TypeWithoutJSON.sql) create table t (id int primary key, s state, n int)", watching: "t"
            ).changes(
                of: """
                    insert into t select n, (array['fine', '\(states.joined(separator: "', '"))'])[n]::state, 0
                    from generate_series(1, \(states.count + 1)) n;
                    update t set n = 1 where id in (1, 2); delete from t where id in (1, 2);
                    """, count: states.count + 5)
            let row = { (id: Int, n: Int) in
                #"{"id":\#(id),"s":"\#(id == 1 ? "fine" : states[id - 2])","n":\#(n)}"#
            }
            #expect(
                lines == (1...states.count + 1).map { "INSERT \(row($0, 0))" }
                    + [1, 2].map { "UPDATE \(row($0, 0)) -> \(row($0, 1))" } + [1, 2].map { "DELETE \(row($0, 1))" })
        }

        @Test("a large row with such a value is reduced, and what is left of it is right")
        func largeRowsWithoutJSON() throws {
            let lines = try bare.prepared(
                "\(TypeWithoutJSON.sql) create table t (id int, s state, x text)", watching: "t"
            ).changes(of: "insert into t values (1, 'P0001', repeat('x', 2000000))", count: 1)
            #expect(lines.count == 1)
            #expect(lines[0].contains(#""id" : 1"#) && lines[0].contains(#""s" : "P0001""#), "\(lines)")
        }

        @Test("a statement that is cancelled while a row's JSON is made is cancelled")
        func cancelledStatements() throws {
            let database = try bare.prepared("\(TypeWithoutJSON.sql) create table t (s state)", watching: "t")
            #expect(throws: (any Error).self) { try database.run("insert into t values ('57014')") }
        }

        @Test("what cannot be recorded at all is lost, and says so")
        func unrecordable() throws {
            let database = try bare.prepared(
                "\(TypeWithoutJSON.sql) create table t (id int, s state)", watching: "t")
            // As if something failed that nobody thought of.
            try database.run(
                "create or replace function roost.large_statement(watched oid, letters text) returns text language sql as $$ select 'no SQL' $$"
            )
            try database.run("insert into t values (1, 'fine'), (2, 'P0001')")
            let session = try database.session()
            let rows = try session.queryRows(
                "select op, record from roost.change where relid = 't'::regclass order by id")
            #expect(rows == [["I", #"{"id":1,"s":"fine"}"#], ["L", nil]])
        }

        @Test func savepointsAndRollbacks() throws {
            let lines = try bare.prepared("create table t (id int)", watching: "t").changes(
                of: """
                    begin; insert into t values (1); savepoint a; insert into t values (2); rollback to a;
                    savepoint b; insert into t values (3); release b; commit;
                    begin; insert into t values (4); rollback;
                    insert into t values (5);
                    """, count: 3)
            #expect(lines == [#"INSERT {"id":1}"#, #"INSERT {"id":3}"#, #"INSERT {"id":5}"#])
        }

        @Test func timestampsAreMilliseconds() throws {
            let database = try bare.prepared("create table t (id int)", watching: "t")
            try database.withFeed { feed, collector in
                try database.run("insert into t values (1)")
                try eventually("the row") { collector.count == 1 }
                let text = collector.seen[0].change.commitTimestamp
                #expect(text.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil)
            }
        }
    }
}
