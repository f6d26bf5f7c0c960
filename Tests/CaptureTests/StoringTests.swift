import Administration
import Capture
import Glibc
import Postgres
import Synchronization
import Testing

@testable import PostgresFixtures

extension CaptureTests {
    /// Nothing lost, nothing twice, in the order of commits.
    @Suite struct StoringTests {
        @Test("a capture that is ended and begun again at any moment stores every row once, in order")
        func onceEach() throws {
            let stage = try CaptureStage("create table t (id serial primary key, w int, n int)", reading: "t")
            let (writers, rounds) = (3, 120)
            try stage.capturing { _ in }
            let done = Mutex(0)
            try concurrently(writers + 1) { place in
                guard place < writers else {
                    var lives = 0
                    while done.withLock({ $0 }) < writers || lives < 10 {
                        // However long a life is, it ends somewhere between two rows.
                        try stage.capturing { _ in usleep(UInt32(lives % 3) * 7_000) }
                        lives += 1
                    }
                    return
                }
                let session = try stage.database.session()
                for n in 0..<rounds {
                    try session.runScript(
                        n % 10 == 9
                            ? "insert into t (w, n) select \(place), \(n) * 1000 + g from generate_series(1, 300) g"
                            : "insert into t (w, n) values (\(place), \(n) * 1000)")
                }
                done.withLock { $0 += 1 }
            }
            try stage.capturing { _ in try stage.settle() }
            let session = try stage.database.session()
            let wrong = try session.queryRows(
                """
                select count(*), count(distinct (record ->> 'id')),
                       (select count(*) from t), (select count(*) from (
                           select (record ->> 'n')::int < lag((record ->> 'n')::int) over (
                               partition by record ->> 'w' order by id) as is_wrong
                           from roost.change where relid = 't'::regclass) o where is_wrong)
                from roost.change where relid = 't'::regclass
                """)
            let row = try #require(wrong.first)
            #expect(row[0] == row[1])
            #expect(row[0] == row[2])
            #expect(row[3] == "0")
        }

        @Test("of two that store at once, the one that does not know what is stored fails, and stores nothing")
        func fence() throws {
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            try stage.capturing { _ in try stage.settle() }
            let session = try stage.database.session()
            let error = #expect(throws: PostgresError.self) {
                try session.queryRows("select roost.store_begins('0/1', null, 0, '0/2', null, 0, 1, '{}')")
            }
            #expect(error?.sqlState == "RS001")
        }

        @Test("a change is stored when everybody sees what it changed, and not as soon as its commit is in the WAL")
        func visible() throws {
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            try stage.capturing { _ in }
            let (writer, session) = (try stage.database.session(), try stage.database.session())
            try writer.runScript("begin")
            let xid = try writer.queryRows("select pg_current_xact_id()::xid::text").first?.first ?? nil
            let store = try PostgresConnection(stage.database.conninfo)
            try store.sendQuery(
                """
                select roost.store_begins(lsn, partial_lsn, partial_rows, lsn, partial_lsn, partial_rows, 0, array[$1::bigint])
                from roost.capture
                """, [xid])
            try eventually("a store that waits") {
                try session.queryRows(
                    "select from pg_stat_activity where query like '%store_begins%' and wait_event = 'PgSleep'"
                )
                .count == 1
            }
            let early = try store.takeResult()
            #expect(early == nil)
            try writer.runScript("commit")
            var result: QueryResult?
            try eventually("an end") {
                result = try store.takeResult()
                return result != nil
            }
            #expect(result?.error == nil)
        }

        @Test("a large transaction is stored in pieces, and a capture that ends between two goes on behind the first")
        func pieces() throws {
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            try stage.capturing { capture in
                try stage.database.run("insert into t select generate_series(1, 50000)")
                try eventually("a piece") { capture.current.rows > 0 }
            }
            let session = try stage.database.session()
            let stored = try session.queryRows("select count(*) from roost.change").first?.first ?? nil
            #expect(stored != "0")
            try stage.capturing { _ in try stage.settle() }
            let sum = try session.queryRows(
                "select count(*), count(distinct record ->> 'id'), max(id) - min(id), count(distinct xid) > 5 from roost.change"
            )
            #expect(sum.first?.prefix(2) == ["50000", "50000"])
            #expect(sum.first?.last == "t")
            let order = try session.queryRows(
                "select bool_and((record ->> 'id')::int = nth) from (select record, row_number() over (order by id) as nth from roost.change) c"
            )
            #expect(order.first?.first == "t")
        }

        @Test("two-phase commit: what was prepared is read when it is committed, and not where it is rolled back")
        func prepared() throws {
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            try stage.capturing { _ in
                let session = try stage.database.session()
                for statement in ["begin", "insert into t values (1)", "prepare transaction 'a'"] {
                    try session.runScript(statement)
                }
                for statement in ["begin", "insert into t values (2)", "prepare transaction 'b'"] {
                    try session.runScript(statement)
                }
                try session.runScript("insert into t values (3)")
                try session.runScript("commit prepared 'a'")
                try session.runScript("rollback prepared 'b'")
                #expect(try stage.stored(2).map(\.record) == [#"{"id":3}"#, #"{"id":1}"#])
            }
        }

        @Test("a table that is altered, with changes from before that are read after")
        func altered() throws {
            let notes = Notes()
            let stage = try CaptureStage(
                """
                create type mood as enum ('sad', 'ok');
                create domain small as int check (value < 10);
                create table t (id int primary key, a text, m mood, s small, gone int)
                """, reading: "t")
            try stage.capturing { _ in }
            try stage.database.run(
                """
                insert into t values (1, 'x', 'ok', 9, 5); alter table t rename a to b; update t set b = 'y';
                alter table t drop gone; insert into t values (2, 'z', 'sad', 1);
                alter table t alter m type text; drop type mood; insert into t values (3, 'z', 'happy', 1);
                alter table t add c int default 7; update t set id = id + 10;
                alter domain small drop constraint small_check; delete from t where id = 11;
                alter domain small add check (value < 5)
                """)
            try stage.capturing(notes: notes) { _ in
                let rows = try stage.stored(8)
                #expect(
                    rows.map { $0.record ?? $0.old } == [
                        #"{"id":1,"a":"x","m":"ok","s":9,"gone":5}"#, #"{"id":1,"b":"y","m":"ok","s":9,"gone":5}"#,
                        #"{"id":2,"b":"z","m":"sad","s":1}"#, #"{"id":3,"b":"z","m":"happy","s":1}"#,
                        #"{"id":11,"b":"y","m":"ok","s":9,"c":7}"#, #"{"id":12,"b":"z","m":"sad","s":1,"c":7}"#,
                        #"{"id":13,"b":"z","m":"happy","s":1,"c":7}"#, #"{"id":11}"#,
                    ])
            }
            // A table that is there no more, and one that writes values that its type no longer takes.
            try stage.database.run("insert into t values (50, 'q', 'm', 1); drop table t")
            try stage.capturing(until: .idle) { _ in }
            #expect(try stage.database.value("select count(*) from roost.change where record ->> 'id' = '50'") == "1")
        }

        @Test("a value that cannot be read as its type any more is a text, and holds up nothing")
        func unreadable() throws {
            let notes = Notes()
            let stage = try CaptureStage(
                """
                create domain small as int check (value < 10); create type pair as (a small, b text);
                create table t (id int primary key, p pair)
                """, reading: "t")
            try stage.capturing { _ in }
            try stage.database.run(
                """
                insert into t values (1, row(9, 'x')); delete from t; alter domain small drop constraint small_check;
                alter domain small add check (value < 5) not valid; insert into t values (2, row(1, 'y'))
                """)
            try stage.capturing(notes: notes) { _ in
                let rows = try stage.stored(3)
                #expect(rows[0].record == #"{"id":1,"p":"(9,x)"}"#)
                #expect(rows[2].record == #"{"id":2,"p":{"a":1,"b":"y"}}"#)
            }
            #expect(notes.all.contains { $0.contains("cannot be written as JSON") })
        }
    }
}
