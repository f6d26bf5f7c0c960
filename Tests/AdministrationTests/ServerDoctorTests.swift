import Administration
import ChangeFeed
import Postgres
import Testing

@testable import PostgresFixtures

extension CommandTests {
    /// What `roost doctor` says of the server, its outbox and its hubs. Each finding is provoked.
    @Suite struct ServerDoctorTests {
        let database: Database

        init() throws {
            database = try PostgresCluster.shared.migratedDatabase().prepared("create table t (n int)", watching: "t")
        }

        func findings(
            _ subject: String, as role: String = "postgres", for hub: ExaminedHub = ExaminedHub(),
            _ change: (inout DoctorLimits) -> Void = { _ in }
        ) -> [Finding] {
            var limits = DoctorLimits()
            change(&limits)
            return Doctor.examineDatabase(conninfo: database.role(role).conninfo, for: hub, limits: limits)
                .filter { $0.subject == subject }
        }

        @Test func clocksThatDiffer() throws {
            let session = try PostgresConnection(database.conninfo)
            #expect(try ServerClock.complaint(about: session) == nil && findings("clock").first?.severity == .good)
            let late = try ServerClock.complaint(about: session) { ServerClock.now() - 90 }
            #expect(late?.hasPrefix("The clocks here and at Postgres differ by ") == true, "\(late ?? "")")
            #expect(try ServerClock.complaint(about: session) { ServerClock.now() + 90 } != nil)
        }

        @Test func sessionsThatAreFree() throws {
            #expect(findings("connections").map(\.severity) == [.good])
            try database.run(
                """
                do $$ begin create role crowded login; exception when duplicate_object then null; end $$;
                alter role crowded connection limit 4; alter database \(database.name) connection limit 7;
                """)
            #expect(findings("connections").map(\.severity) == [.good], "superusers have no limits")
            let limited = findings("connections", as: "crowded")
            #expect(limited.first?.message.hasPrefix("3 sessions are free under the role's") ?? false, "\(limited)")
            try database.run("alter role crowded connection limit -1")
            let crowded = findings("connections", as: "crowded")
            #expect(crowded.map(\.severity) == [.warning])
            #expect(crowded.first?.message.contains("under the database's limit, and a hub takes up to 13") ?? false)
            let pushing = findings("connections", as: "crowded", for: ExaminedHub(sendsPushes: true))
            #expect(pushing.first?.message.contains("takes up to 16") ?? false)
            // What a running hub takes is there already.
            try database.withFeed { _, _ in
                #expect(findings("connections", as: "crowded").map(\.severity) == [.good])
            }
        }

        @Test func transactionsThatAreOpenForLong() throws {
            let open = Database(conninfo: database.conninfo + " application_name=nightly")
            let session = try open.session()
            try session.runScript("begin; insert into t values (1)")
            #expect(findings("transactions").map(\.severity) == [.good])
            let id = session.backendID
            let found = findings("transactions") { $0.transaction = .zero }
            #expect(found.map(\.severity) == [.warning])
            #expect(found.first?.message.contains("(nightly, idle in transaction)") ?? false, "\(found)")
            #expect(found.first?.message.contains("pg_terminate_backend(\(id))") ?? false, "\(found)")
        }

        /// Whoever may connect can hold them, and has nothing else to stop hubs with.
        @Test func locksOfSomebodyElse() throws {
            try database.run(
                """
                do $$ begin create role bystander login; exception when duplicate_object then null; end $$;
                """)
            #expect(findings("locks").map(\.severity) == [.good])
            let (stranger, writer) = (try database.role("bystander").session(), try database.session())
            try writer.runScript("select pg_advisory_lock(1919905650, 0)")
            try stranger.runScript("begin; select pg_advisory_xact_lock_shared(1919905651, 7), pg_advisory_lock(1, 1)")
            #expect(findings("locks").map(\.severity) == [.good], "as a hub, and as a writer")
            try stranger.runScript("select pg_advisory_lock(1919905651, 0), pg_advisory_lock(1919905651, 50)")
            let found = findings("locks")
            #expect(found.map(\.severity) == [.error])
            #expect(
                found.first?.message.contains(
                    "Process \(stranger.backendID) of the role bystander, which may not use the schema roost, holds 2 advisory "
                        + "locks of roost's, such as (1919905651, 0)") ?? false, "\(found)")
        }

        @Test func slotsThatNobodyReads() throws {
            // The slot begins at the last checkpoint.
            try database.run("checkpoint")
            try database.run("select pg_create_physical_replication_slot('left_behind', true)")
            defer { #expect(throws: Never.self) { try database.run("select pg_drop_replication_slot('left_behind')") } }
            #expect(findings("slots").isEmpty)
            try database.run("select pg_switch_wal(); insert into t values (1)")
            let found = findings("slots") { $0.walBytes = 0 }
            #expect(found.map(\.severity) == [.warning])
            #expect(found.first?.message.contains("pg_drop_replication_slot('left_behind')") ?? false, "\(found)")
        }

        @Test func outboxThatIsNotPruned() throws {
            try database.run("insert into t values (1)")
            #expect(findings("outbox").map(\.severity) == [.good])
            try database.run("update roost.change set at = at - interval '25 hours'")
            let found = findings("outbox")
            #expect(found.map(\.severity) == [.warning])
            #expect(found.first?.message.hasPrefix("The oldest change in the outbox is 25 h old") ?? false, "\(found)")
            let patient = findings("outbox", for: ExaminedHub(retention: .seconds(48 * 3600)))
            #expect(patient.map(\.severity) == [.good])
        }

        @Test func outboxThatVacuumDoesNotReach() throws {
            // Whatever autovacuum does meanwhile on its own, here it does not.
            try database.run("alter table roost.change set (autovacuum_enabled = false)")
            let off = findings("outbox")
            #expect(off.map(\.severity) == [.warning])
            #expect(off.first?.message.contains("reset (autovacuum_enabled)") ?? false, "\(off)")
            try database.run("insert into t select generate_series(1, 200)")
            try database.run("delete from roost.change")
            try eventually("the statistics know of it") {
                findings("outbox") { $0.deadRows = 100 }.contains { $0.message.contains("200 dead rows and") }
            }
            try database.run("alter table roost.change reset (autovacuum_enabled)")
            try database.run("vacuum roost.change")
            try eventually("the statistics know of that, too") {
                findings("outbox") { $0.deadRows = 100 }.allSatisfy { $0.severity == .good }
            }
        }

        @Test func tablesThatLostTheirTriggers() throws {
            try database.run("create table other (n int)")
            try Watcher.watch("other", conninfo: database.conninfo)
            try database.run("insert into t values (1); insert into other values (1)")
            #expect(findings("outbox").map(\.severity) == [.good])
            try database.run(
                """
                drop trigger roost_insert on t; drop trigger roost_update on t; drop trigger roost_delete on t;
                drop trigger roost_truncate on t; drop table other; create table other (n int)
                """)
            let found = findings("outbox").filter { $0.severity == .warning }.map(\.message)
            #expect(found.count == 2)
            #expect(found.contains { $0.hasPrefix("public.t was watched until a short while ago") }, "\(found)")
            #expect(found.contains { $0.contains("recent changes of a table that is gone") }, "\(found)")
        }

        @Test func triggersThatDoNotFireAreMended() throws {
            func tables() -> [String] {
                Doctor.examineDatabase(conninfo: database.conninfo).filter {
                    $0.subject == "tables" && $0.severity != .good
                }
                .map { "\($0.severity.rawValue): \($0.message)" }
            }
            func says(_ beginning: String) -> Bool { tables().first?.hasPrefix(beginning) ?? false }
            #expect(tables().isEmpty)
            try database.run("alter table t disable trigger all")
            #expect(says("error: public.t has triggers of roost's that are disabled"), "\(tables())")
            try Watcher.watch("t", conninfo: database.conninfo)
            #expect(tables().isEmpty)
            try database.run(
                """
                drop trigger roost_update on t;
                create trigger roost_update after update of n on t for each statement execute function roost.on_update()
                """)
            #expect(says("error: public.t has triggers of roost's that differ from"), "\(tables())")
            try Watcher.watch("t", conninfo: database.conninfo)
            #expect(tables().isEmpty)
            #expect(try database.changes(of: "insert into t values (1); update t set n = 2", count: 2).count == 2)
            try database.run(
                """
                create trigger again after insert on t referencing new table as roost_new
                for each statement execute function roost.on_insert()
                """)
            #expect(says("warning: public.t has one of roost's triggers twice"), "\(tables())")
            try Watcher.unwatch("t", conninfo: database.conninfo)
            try database.run(
                """
                create function own() returns trigger language plpgsql as 'begin return null; end';
                create trigger roost_insert after insert on t for each statement execute function own()
                """)
            #expect { try Watcher.watch("t", conninfo: database.conninfo) } throws: {
                "\($0)".contains("already exists") && "\($0)".contains("it is not roost's; rename it")
            }
        }

        @Test func hubsThatAreNotRung() throws {
            #expect(findings("hubs").map(\.message) == ["No hub named roost is connected at present."])
            // As a restore of the data alone does, without triggers.
            try database.run(
                """
                alter table roost.node disable trigger node;
                insert into roost.node (name) values ('roost');
                alter table roost.node enable trigger node
                """)
            let found = findings("hubs").filter { $0.severity == .error }
            #expect(found.count == 1)
            #expect(found.first?.message.contains("select roost.write_must_ring()") ?? false)
            try database.run("select roost.write_must_ring()")
            #expect(findings("hubs").map(\.severity) == [.good])
        }

        @Test("a hub that is connected and whose place does not move, although changes lie behind it")
        func hubsThatDoNotGetOn() throws {
            let session = try database.session()
            try session.runScript(
                """
                insert into roost.node (name) values ('stuck'), ('level');
                insert into roost.cursor (node, system_identifier, snapshot, stored_at)
                select name, 1, pg_current_snapshot(), now() - interval '5 minutes' from roost.node;
                select pg_advisory_lock(1919905649, doorbell) from roost.node
                """)
            #expect(!findings("hubs").contains { $0.message.contains("does not move") })
            try database.run(
                "insert into roost.change (relid, op, at) values ('t'::regclass, 'T', now() - interval '3 minutes')")
            try session.runScript("update roost.cursor set snapshot = pg_current_snapshot() where node = 'level'")
            let found = findings("hubs").filter { $0.severity == .error && $0.message.contains("does not move") }
            #expect(
                found.count == 1 && found.first?.message.hasPrefix("The hub stuck is connected") == true, "\(found)")
            try session.runScript("update roost.cursor set stored_at = now()")
            #expect(!findings("hubs").contains { $0.message.contains("does not move") }, "it has just moved")
        }

        @Test("a column whose values a cast of somebody's makes JSON of")
        func castsToJSON() throws {
            #expect(!findings("tables").contains { $0.message.contains("as texts") })
            try database.run(
                "\(TypeWithoutJSON.sql) create domain list as state[]; alter table t add s state, add l list, add x text[]"
            )
            let found = findings("tables").filter { $0.message.contains("as texts") }
            #expect(found.count == 2 && found.allSatisfy { $0.severity == .good }, "\(found)")
            #expect(found.last?.message.contains("public.t.s (state) are written as JSON by state_as_json(") == true)
        }

        @Test func hubsThatDoNotComeBack() throws {
            try database.withFeed(node: "it's old") { feed, collector in
                try database.run("insert into t values (1)")
                try eventually("a place is stored") {
                    try database.value("select 1 from roost.cursor") != nil
                }
                try database.run("update roost.cursor set stored_at = stored_at - interval '2 days'")
                #expect(findings("hubs").map(\.severity) == [.good], "it is connected")
            }
            try database.run("update roost.cursor set stored_at = now() - interval '2 days'")
            let found = findings("hubs").filter { $0.severity == .warning }
            let remedy = "delete from roost.node where name = 'it''s old'"
            #expect(found.first?.message.contains(remedy) ?? false, "\(found)")
            #expect(findings("hubs", for: ExaminedHub(node: "it's old")).map(\.severity) == [.good], "it is examined")
        }
    }
}
