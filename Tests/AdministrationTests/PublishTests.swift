import Administration
import Capture
import ChangeFeed
import Foundation
import Logging
import Postgres
import Synchronization
import Testing

@testable import PostgresFixtures

extension CommandTests {
    /// `roost watch` and `roost unwatch` where tables are read from the WAL.
    @Suite struct PublishTests {
        let database: Database

        init() throws {
            database = try PostgresCluster.shared.migratedDatabase().prepared(
                """
                create table t (id int primary key, n int, body text);
                create table keyless (id int, body text);
                create table tree (id int, body text) partition by range (id);
                create table tree_low partition of tree for values from (0) to (10);
                create table tree_high partition of tree for values from (10) to (20);
                """)
        }

        @discardableResult
        func watch(
            _ table: String, _ method: CaptureMethod = .wal, patience: LockPatience = LockPatience()
        ) throws -> Watcher.Outcome {
            try Watcher.watch(table, capture: method, conninfo: database.conninfo, patience: patience)
        }

        func unwatch(_ table: String) throws -> Watcher.Outcome {
            try Watcher.unwatch(table, conninfo: database.conninfo)
        }

        /// A slot of a database would keep the shared server's WAL for all other tests.
        func cleanUp() throws {
            try database.run(
                """
                select pg_terminate_backend(active_pid) from pg_replication_slots
                where slot_name = roost.slot_name() and active_pid is not null
                """)
            let session = try database.session()
            try eventually("the slot to be dropped") {
                try session.queryRows(
                    """
                    select pg_drop_replication_slot(slot_name) from pg_replication_slots
                    where slot_name = roost.slot_name() and not active
                    """
                ).count == 1
                    || session.queryRows("select from pg_replication_slots where slot_name = roost.slot_name()").isEmpty
            }
        }

        func capturing<Outcome>(_ body: () throws -> Outcome) throws -> Outcome {
            let capture = WALCapture(
                conninfo: database.conninfo, logger: .silent, firstRetry: .milliseconds(50), interval: .milliseconds(50)
            )
            capture.start()
            defer { capture.stop() }
            return try body()
        }

        /// The names of the published tables, and of the triggers that there are.
        func state() throws -> (published: [String], triggers: Int, slots: Int) {
            let session = try database.session()
            let published = try session.queryRows(
                """
                select prrelid::regclass from pg_publication_rel r join pg_publication p on p.oid = prpubid
                where pubname = 'roost' order by prrelid::regclass::text
                """)
            let triggers = try session.queryRows(
                """
                select from pg_trigger t join pg_proc p on p.oid = tgfoid
                where pronamespace = 'roost'::regnamespace and proname in ('on_insert', 'on_update', 'on_delete', 'on_truncate')
                """)
            let slots = try session.queryRows("select from pg_replication_slots where slot_name = roost.slot_name()")
            return (published.compactMap { $0[0] }, triggers.count, slots.count)
        }

        @Test func publicationAndSlotComeAndGo() throws {
            #expect(try watch("t").changed == ["public.t"])
            #expect(try state() == (["t"], 0, 1))
            #expect(try watch("t").changed.isEmpty)
            let session = try database.session()
            #expect(
                try session.queryRows(
                    "select pubviaroot and pubinsert and pubupdate and pubdelete and pubtruncate from pg_publication")
                    == [["t"]])
            #expect(try session.queryRows("select count(lsn) from roost.capture") == [["1"]])
            let outcome = try unwatch("t")
            #expect(outcome.changed == ["public.t"])
            #expect(outcome.notes.first?.contains("it was dropped now") ?? false)
            #expect(try state() == ([], 0, 0))
            #expect(try session.queryRows("select from roost.capture").isEmpty)
            #expect(try unwatch("t").changed.isEmpty)
        }

        /// Without an identity Postgres would refuse what writers do.
        @Test func tablesWithoutAKeyStayWritable() throws {
            defer { #expect(throws: Never.self) { try cleanUp() } }
            let outcome = try watch("keyless")
            #expect(outcome.notes.count == 1)
            #expect(outcome.notes.first?.hasPrefix("keyless has no primary key") ?? false, "\(outcome.notes)")
            #expect(try watch("tree").notes.count == 3)
            #expect(try watch("t").notes.isEmpty)
            for table in ["keyless", "tree"] {
                try database.run(
                    "insert into \(table) values (1, 'a'), (11, 'b'); update \(table) set body = 'c'; delete from \(table)"
                )
            }
        }

        @Test func refusals() throws {
            try database.run("create unlogged table flimsy (id int primary key)")
            #expect { try watch("flimsy") } throws: { "\($0)".contains("is unlogged") }
            try database.run("create publication roost for all tables")
            #expect { try watch("t") } throws: { "\($0)".contains("covers all tables or a whole schema") }
            try database.run("drop publication roost")
            #expect(try state() == ([], 0, 0))
        }

        /// Who wrote before holds the slot up; it is said who that is, and nothing is left behind.
        @Test func theSlotWaitsForWriters() throws {
            defer { #expect(throws: Never.self) { try cleanUp() } }
            let writer = try database.session()
            try writer.runScript("begin; insert into keyless values (1, 'a')")
            #expect { try watch("t", patience: LockPatience(total: .milliseconds(300))) } throws: {
                "\($0)".contains("once all transactions that write have ended")
                    && "\($0)".contains("pg_terminate_backend(\(writer.backendID))")
            }
            #expect(try state() == ([], 0, 0))
            try writer.runScript("commit")
            #expect(try watch("t").changed.count == 1)
        }

        @Test func whatIsInTheSlotIsStoredBeforeTriggersTakeOver() throws {
            defer { #expect(throws: Never.self) { try cleanUp() } }
            try watch("t")
            #expect { try watch("t", .triggers, patience: LockPatience(total: .milliseconds(300))) } throws: {
                "\($0)".contains("no hub reads them")
            }
            #expect(try state() == (["t"], 0, 1))
        }

        /// Writers go on all the while; of each row every version is stored once, and in order.
        @Test func changingOverLosesAndRepeatsNothing() throws {
            defer { #expect(throws: Never.self) { try cleanUp() } }
            try watch("t", .triggers)
            var patience = LockPatience()
            patience.firstPause = .milliseconds(20)
            patience.longestPause = .milliseconds(50)
            let hasty = patience
            let isDone = Mutex(false)
            let written = Mutex([Int](repeating: 0, count: 3))
            let database = database
            try capturing {
                try concurrently(4) { index in
                    guard index < 3 else {
                        defer { isDone.withLock { $0 = true } }
                        for method in [CaptureMethod.wal, .triggers, .wal, .triggers] {
                            #expect(try watch("t", method, patience: hasty).changed.count > 0)
                            let counts = written.withLock { $0 }
                            try eventually("everybody to write on") {
                                zip(written.withLock { $0 }, counts).allSatisfy { $0 > $1 + 5 }
                            }
                        }
                        return
                    }
                    let session = try database.session()
                    var n = 0
                    while !isDone.withLock({ $0 }) {
                        n += 1
                        // Some are still open when their table is asked for.
                        let pause = n % 20 == 0 ? "select pg_sleep(0.1);" : ""
                        try session.runScript(
                            """
                            begin; insert into t values (\(index), \(n)) on conflict (id) do update set n = excluded.n;
                            \(pause) commit
                            """)
                        written.withLock { $0[index] = n }
                    }
                }
            }
            let session = try database.session()
            #expect(try state().triggers == 4)
            for (index, count) in written.withLock({ $0 }).enumerated() {
                let stored = try session.queryRows(
                    """
                    select record ->> 'n' from roost.change
                    where relid = 't'::regclass and record ->> 'id' = $1 order by id
                    """,
                    [String(index)])
                #expect(stored.compactMap { $0[0].flatMap { Int($0) } } == Array(1...max(1, count)))
            }
            let ways = try session.queryRows(
                """
                select count(*) filter (where lsn is null) > 0, count(lsn) > 0
                from roost.change where relid = 't'::regclass
                """)
            #expect(ways == [["t", "t"]])
        }

        /// Who is writing to a table that joins is waited for: the cut is the same for all of its rows.
        @Test func whoIsWritingIsWaitedFor() throws {
            defer { #expect(throws: Never.self) { try cleanUp() } }
            try watch("keyless")
            let database = database
            try capturing {
                try concurrently(2) { index in
                    let session = try database.session()
                    let waiting = """
                        select from pg_locks where relation = 't'::regclass and mode = 'ShareRowExclusiveLock' and granted = $1::bool
                        """
                    if index == 0 {
                        try session.runScript("begin; insert into t values (1)")
                        try eventually("the command to wait") { try !session.queryRows(waiting, ["false"]).isEmpty }
                        try session.runScript("insert into t values (2); commit")
                    } else {
                        try eventually("the table to be in use") {
                            try !session.queryRows("select from pg_locks where relation = 't'::regclass and granted")
                                .isEmpty
                        }
                        try watch("t")
                        try session.runScript("insert into t values (3)")
                    }
                }
                let session = try database.session()
                try eventually("the row to be stored") {
                    try !session.queryRows(
                        "select from roost.change where relid = 't'::regclass and record ->> 'id' = '3'"
                    )
                    .isEmpty
                }
                #expect(
                    try session.queryRows("select record ->> 'id' from roost.change where relid = 't'::regclass") == [
                        ["3"]
                    ])
            }
        }

        /// Whenever a hub looks, nothing of a table with rows in its partitions is missing.
        @Test func partitionsChangeOverWithoutAWord() throws {
            defer { #expect(throws: Never.self) { try cleanUp() } }
            try database.run("insert into tree values (1, 'a'), (11, 'b')")
            // The slot stays whatever comes of the other table.
            try watch("keyless")
            let session = try database.session()
            func look() throws -> [[String?]] {
                _ = try session.queryRows("select roost.note_captures()")
                return try session.queryRows("select pruned_xid, unread_lsn from roost.meta")
            }
            let before = try look()
            try capturing {
                for method in [CaptureMethod.wal, .triggers, .wal, .triggers] {
                    let outcome = try watch("tree", method)
                    #expect(!outcome.changed.isEmpty)
                    let after = try look()
                    #expect(after == before, "\(method)")
                    try database.run("insert into tree_low values (2, 'c'); insert into tree values (12, 'd')")
                }
            }
            // What a partition was written before it had triggers is still missing.
            try database.run(
                """
                create table tree_top partition of tree for values from (20) to (30);
                insert into tree_top values (21, 'e')
                """)
            try watch("tree", .triggers)
            let after = try look()
            #expect(after != before)
        }

        /// Partitions get their triggers one after another, and a hub may look in between.
        @Test func aFirstWatchOfPartitionsTellsNobody() throws {
            let database = database
            try database.run("insert into tree values (1, 'a'), (11, 'b')")
            let waiting =
                "select from pg_locks where relation = 'tree_high'::regclass and mode = $1 and granted = $2::bool"
            let told = "select pruned_xid from roost.meta"
            let before = try database.session().queryRows(told)
            try concurrently(2) { index in
                let session = try database.session()
                if index == 0 {
                    try session.runScript("begin; insert into tree_high values (12, 'c')")
                    try eventually("the command to wait") {
                        try !session.queryRows(waiting, ["ShareRowExclusiveLock", "false"]).isEmpty
                    }
                    try database.run("select roost.note_captures()")
                    try session.runScript("commit")
                } else {
                    try eventually("the partition to be in use") {
                        try !session.queryRows(waiting, ["RowExclusiveLock", "true"]).isEmpty
                    }
                    let outcome = try watch("tree", .triggers)
                    #expect(outcome.changed == ["tree_low", "tree_high", "tree"])
                }
            }
            try database.run("select roost.note_captures()")
            let after = try database.session().queryRows(told)
            #expect(after == before)
        }

        @Test func membersOfAScopeAndPublicationsFollow() throws {
            defer { #expect(throws: Never.self) { try cleanUp() } }
            try database.run(
                """
                alter table t enable row level security;
                create table allowed (id int primary key, n int);
                create policy p on t for select using (exists (select from allowed a where a.n = t.n));
                create publication chat for table keyless, tree;
                """)
            let outcome = try Watcher.watch(
                "t", scope: .declare(column: "n", members: ["allowed"]), capture: .wal, conninfo: database.conninfo)
            #expect(outcome.scope?.problems == [])
            #expect(outcome.members.map(\.table) == ["public.allowed"])
            try Watcher.watch(publication: "chat", capture: .wal, conninfo: database.conninfo)
            #expect(try state() == (["allowed", "keyless", "t", "tree"], 0, 1))
        }
    }
}
