import Capture
import Glibc
import Postgres
import Testing

@testable import PostgresFixtures

extension CaptureTests {
    /// The slot and who reads it.
    @Suite struct LeadTests {
        @Test("of two hubs one leads; where it ends, the other goes on at once")
        func twoHubs() throws {
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            try stage.capturing { _ in }
            let notes = Notes()
            let other = WALCapture(
                conninfo: stage.database.conninfo, logger: .noting(notes), firstRetry: .milliseconds(50),
                interval: .milliseconds(50))
            defer { other.stop() }
            try stage.capturing { first in
                other.start()
                try eventually("a follower") { other.current.state == .following }
                try stage.database.run("insert into t values (1)")
                _ = try stage.stored(1)
                try eventually("a count") { first.current.rows == 1 }
            }
            try stage.database.run("insert into t values (2)")
            _ = try stage.stored(2)
            try eventually("a count") { other.current.rows == 1 }
            #expect(other.current.state == .leading)
        }

        @Test("a leader whose session says nothing any more is ended, and its stream with it")
        func frozen() throws {
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            try stage.capturing { _ in }
            // In place of a hub that is frozen: it leads, and is silent; another session reads the slot.
            let frozen = try stage.database.session()
            try eventually("the lead") {
                try frozen.queryRows("select pg_try_advisory_lock(1919905648, 1)").first?.first == "t"
            }
            try stage.database.run("insert into t values (1)")
            let notes = Notes()
            try stage.capturing(silence: .seconds(1), notes: notes) { _ in _ = try stage.stored(1) }
            #expect(notes.all.contains { $0.contains("this one takes over") })
            #expect(throws: PostgresError.self) { try frozen.runScript("select 1") }
        }

        @Test("a leader's backend that is frozen cannot be ended: that is said once, and tried until it can")
        func frozenBackend() throws {
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            try stage.capturing { _ in }
            let leader = try stage.database.session()
            try eventually("the lead") {
                try leader.queryRows("select pg_try_advisory_lock(1919905648, 1)").first?.first == "t"
            }
            let backend = try #require(
                try leader.queryRows("select pg_backend_pid()").first?.first.flatMap { $0.flatMap { pid_t($0) } })
            try stage.database.run("insert into t values (1)")
            let notes = Notes()
            let other = WALCapture(
                conninfo: stage.database.conninfo, logger: .noting(notes), firstRetry: .milliseconds(50),
                silence: .seconds(1), interval: .milliseconds(50))
            defer { other.stop() }
            try PostgresFixtures.frozen([backend]) {
                other.start()
                try eventually("a warning") { notes.all.contains { $0.contains("this one takes over") } }
                let asked = "select query_start::text from pg_stat_activity where application_name = 'roost capture'"
                var attempts: Set<String> = []
                try eventually("more attempts") {
                    if let start = try stage.database.value(asked) { attempts.insert(start) }
                    return attempts.count > 5
                }
            }
            _ = try stage.stored(1)
            #expect(notes.all.count { $0.contains("this one takes over") } == 1)
        }

        @Test("sessions of a leader that are ended are made again, and nothing is missing")
        func cutOff() throws {
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            try stage.capturing { _ in
                for n in 1...6 {
                    // The one that stores, or the one that reads.
                    let kind = n % 2 == 0 ? "client backend" : "walsender"
                    try stage.database.run(
                        """
                        insert into t values (\(n));
                        select pg_terminate_backend(pid) from pg_stat_activity
                        where application_name = 'roost capture' and backend_type = '\(kind)'
                          and datname = current_database();
                        """)
                    _ = try stage.stored(n)
                }
            }
        }

        @Test("a quiet publication in a busy database keeps no WAL")
        func quiet() throws {
            let stage = try CaptureStage("create table t (id int primary key); create table busy (n int)", reading: "t")
            try stage.capturing { capture in
                let before = try stage.database.value(
                    "select restart_lsn from pg_replication_slots where slot_name = roost.slot_name()")
                try stage.database.run("insert into busy select generate_series(1, 100000); checkpoint")
                try stage.settle()
                let session = try stage.database.session()
                try eventually("less WAL to be kept") {
                    try session.runScript("checkpoint; insert into busy values (1)")
                    return try session.queryRows(
                        """
                        select restart_lsn > $1::pg_lsn and pg_current_wal_lsn() - restart_lsn < 1000000
                        from pg_replication_slots where slot_name = roost.slot_name()
                        """, [before]
                    ).first?.first == "t"
                }
                #expect(capture.current.rows == 0)
            }
        }

        @Test(
            "a slot that is gone is made again, and what is missing is noted for clients; one that nobody read is not missed"
        )
        func lost() throws {
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            let session = try stage.database.session()
            try stage.capturing { _ in
                try stage.database.run("insert into t values (1)")
                _ = try stage.stored(1)
            }
            #expect(try session.queryRows("select count(*) from roost.change where op = 'X'").first?.first == "0")
            // Its walsender ends a moment after the capture.
            try eventually("a slot that nobody reads") {
                try session.queryRows("select from pg_replication_slots where slot_name = roost.slot_name() and active")
                    .isEmpty
            }
            try session.runScript("select pg_drop_replication_slot(roost.slot_name())")
            try session.runScript("insert into t values (2)")
            // As it may come with another server's dump: nothing of it is in a new slot.
            try session.runScript("update roost.meta set unread_lsn = 'FFFFFFFF/0'")
            let notes = Notes()
            try stage.capturing(notes: notes) { _ in
                try session.runScript("insert into t values (3)")
                try stage.settle()
            }
            #expect(try session.queryRows("select unread_lsn is null from roost.meta").first == ["t"])
            #expect(notes.all.contains { $0.contains("changes that were committed in between are missing") })
            let ids = try session.queryRows(
                "select record ->> 'id' from roost.change where record is not null order by id")
            #expect(ids.map(\.first) == ["1", "3"])
            // A cursor of before does not see the transaction that noted it; one of after does.
            let noted = try session.queryRows(
                """
                select (select xid from roost.change where op = 'X') = pruned_xid,
                       pg_visible_in_snapshot(pruned_xid, pg_current_snapshot())
                from roost.meta
                """)
            #expect(noted.first == ["t", "t"])
        }

        @Test("a publication that was made anew behind the slot's back costs what was missed, and is said")
        func otherPublication() throws {
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            let session = try stage.database.session()
            // From 18 on Postgres reads on, as if the table had not been published meanwhile.
            if try stage.database.serverVersion() >= 180_000 { return }
            try stage.capturing { _ in try stage.settle() }
            try session.runScript("drop publication roost; insert into t values (1)")
            try session.runScript("create publication roost for table t with (publish_via_partition_root = true)")
            let notes = Notes()
            try stage.capturing(notes: notes) { capture in
                try eventually("another slot: \(notes.all)") { notes.all.contains { $0.contains("are missing") } }
                try session.runScript("insert into t values (2)")
                try eventually("the change") {
                    try session.queryRows("select from roost.change where record ->> 'id' = '2'").count == 1
                }
            }
        }

        @Test("a slot waits for old transactions to be made, and says for whom")
        func oldTransactions() throws {
            let stage = try CaptureStage("create table t (id int primary key); create table u (id int)", reading: "t")
            let old = try stage.database.session()
            try old.runScript("set application_name = 'nightly'; begin; insert into u values (1)")
            let notes = Notes()
            try stage.capturing(notes: notes, until: .preparing) { capture in
                try eventually("a word: \(notes.all)") {
                    notes.all.contains { $0.contains("it waits for process") && $0.contains("nightly") }
                }
                #expect(capture.current.state == .preparing)
                try old.runScript("commit")
                try eventually("the lead") { capture.current.state == .leading }
            }
        }

        @Test("the slot goes when the last table leaves the publication, and is made again for the next one")
        func unused() throws {
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            let session = try stage.database.session()
            let slots = "select count(*) from pg_replication_slots where slot_name = roost.slot_name()"
            try stage.capturing { capture in
                try session.runScript("insert into t values (1)")
                try session.runScript("alter publication roost drop table t")
                try eventually("no slot") { try session.queryRows(slots).first?.first == "0" }
                try eventually("idleness") { capture.current.state == .idle }
                #expect(try session.queryRows("select count(*) from roost.capture").first?.first == "0")
                #expect(try session.queryRows("select count(*) from roost.change").first?.first == "1")
                try session.runScript("alter publication roost add table t")
                try eventually("the lead") { capture.current.state == .leading }
                try session.runScript("insert into t values (2)")
                _ = try stage.stored(2)
            }
            #expect(try session.queryRows("select count(*) from roost.change where op = 'X'").first?.first == "0")
            // While nobody reads: what was committed before is read first.
            try session.runScript("insert into t values (3); drop table t")
            try stage.capturing(until: .idle) { _ in
                let left = try session.queryRows(slots)
                #expect(left.first?.first == "0")
            }
            let stored = try session.queryRows("select count(*) from roost.change")
            #expect(stored.first?.first == "3")
        }

        @Test("what keeps the WAL from being read is said in a sentence, and tried again")
        func refusals() throws {
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            try stage.database.run(
                """
                create role plain login; grant all on schema roost to plain; grant all on all tables in schema roost to plain;
                grant all on all sequences in schema roost to plain; grant all on all functions in schema roost to plain
                """)
            let notes = Notes()
            let capture = WALCapture(
                conninfo: stage.database.role("plain").conninfo, logger: .silent, firstRetry: .milliseconds(20),
                report: { if let problem = $0 { notes.add(problem) } })
            capture.start()
            defer { capture.stop() }
            try eventually("a word") { !notes.all.isEmpty }
            #expect(notes.all.first?.contains("alter role \"plain\" replication") == true, "\(notes.all)")
            try stage.database.run("alter role plain replication")
            try eventually("the lead: \(notes.all)") { capture.current.state == .leading }
        }

        @Test("what is committed in the moment before Postgres crashes is stored once it is back")
        func crash() throws {
            let cluster = PostgresCluster(settings: "wal_level = logical")
            let database = try cluster.migratedDatabase().prepared("create table t (id int primary key)")
            try database.run("create publication roost for table t with (publish_via_partition_root = true)")
            let capture = WALCapture(
                conninfo: database.conninfo, logger: .silent, firstRetry: .milliseconds(20), interval: .milliseconds(50)
            )
            capture.start()
            defer { capture.stop() }
            try eventually("the lead") { capture.current.state == .leading }
            for round in 0..<4 {
                let session = try database.session()
                for n in 0..<50 { try session.runScript("insert into t values (\(round * 100 + n))") }
                try cluster.stop("immediate")
                try cluster.start()
            }
            try eventually("all rows, once") {
                try database.session().queryRows("select count(*), count(distinct record ->> 'id') from roost.change")
                    .first
                    == ["200", "200"]
            }
        }
    }
}
