import Administration
import Capture
import Logging
import Testing

@testable import PostgresFixtures

extension CommandTests {
    /// What `roost doctor` says of tables that are read from the WAL.
    @Suite struct CaptureDoctorTests {
        private func complaints(
            _ database: Database, readsWAL: Bool = true, about subjects: Set<String> = ["capture", "tables"]
        ) -> [String] {
            Doctor.examineDatabase(conninfo: database.conninfo, for: ExaminedHub(readsWAL: readsWAL))
                .filter { subjects.contains($0.subject) && $0.severity != .good }
                .map { "\($0.severity.rawValue): \($0.message)" }
                // The cluster that the tests share has no bound.
                .filter { !$0.contains("max_slot_wal_keep_size is not set") }
        }

        private func dropSlot(_ database: Database) throws {
            try database.run(
                "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = roost.slot_name()"
            )
        }

        @Test func theWayToAWatchedTable() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared("create table t (id int primary key)")
            #expect(complaints(database, about: ["capture"]).first?.contains("No table is read from the WAL") ?? false)
            #expect(complaints(database, readsWAL: false, about: ["capture"]).isEmpty)
            try Watcher.watch("t", capture: .wal, conninfo: database.conninfo)
            #expect(complaints(database).map { $0.prefix(30) } == ["warning: Nobody reads the logi"])
            #expect(
                complaints(database, readsWAL: false).contains {
                    $0.hasPrefix("error: public.t is to be read from the WAL")
                })
            let capture = WALCapture(conninfo: database.conninfo, logger: .silent, interval: .milliseconds(50))
            capture.start()
            defer { capture.stop() }
            try eventually("a hub that reads") { capture.current.state == .leading }
            #expect(complaints(database).isEmpty)
            #expect(complaints(database, readsWAL: false).isEmpty)
            let all = Doctor.examineDatabase(conninfo: database.conninfo, for: ExaminedHub(readsWAL: true))
            #expect(
                all.contains { $0.message.contains("max_slot_wal_keep_size is not set") && $0.severity == .warning })
            // The last table takes the slot with it.
            #expect(try Watcher.unwatch("t", conninfo: database.conninfo).notes.isEmpty)
            let session = try database.session()
            try eventually("the hub to drop the slot") {
                try session.queryRows("select from pg_replication_slots where slot_name = roost.slot_name()").isEmpty
            }
        }

        @Test func whatIsWrongWithAPublication() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared("create table t (id int primary key)")
            defer { #expect(throws: Never.self) { try dropSlot(database) } }
            try Watcher.watch("t", capture: .wal, conninfo: database.conninfo)
            try database.run("alter publication roost set (publish = 'insert')")
            #expect(complaints(database).contains { $0.contains("leaves out some operations") })
            try database.run(
                """
                alter publication roost set (publish = 'insert, update, delete, truncate');
                alter table t drop constraint t_pkey;
                create trigger roost_insert after insert on t referencing new table as roost_new
                for each statement execute function roost.on_insert()
                """)
            #expect(
                complaints(database).contains { $0.hasPrefix("error: public.t, or a partition of it, has no replica") })
            #expect(complaints(database).contains { $0.hasPrefix("error: public.t has triggers of roost's and is in") })
            // What watch is told to mend, it mends.
            #expect(try Watcher.watch("t", capture: .wal, conninfo: database.conninfo).notes.count == 1)
            #expect(complaints(database).count == 1)
            try dropSlot(database)
            #expect(complaints(database).contains { $0.contains("The logical slot is gone") })
            try database.run("select pg_create_physical_replication_slot(roost.slot_name())")
            #expect(complaints(database).contains { $0.contains("belongs to another plugin") })
            try database.run("create table other (id int primary key)")
            #expect { try Watcher.watch("other", capture: .wal, conninfo: database.conninfo) } throws: {
                "\($0)".contains("belongs to another plugin or database")
            }
            try dropSlot(database)
            try database.run("select pg_create_logical_replication_slot(roost.slot_name(), 'pgoutput')")
            try database.run("alter publication roost drop table t")
            #expect(complaints(database).contains { $0.contains("is left over: no table is read") })
        }

        @Test func rightsOfTheRole() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared("create table t (id int primary key)")
            try database.run(
                """
                do $$ begin create role weak_hub login; exception when duplicate_object then null; end $$;
                grant usage on schema roost to weak_hub;
                grant select, insert, update, delete on all tables in schema roost to weak_hub;
                """)
            let weak = Database(conninfo: database.conninfo.replacing("user=postgres", with: "user=weak_hub"))
            #expect(complaints(weak).contains { $0.contains("run `alter role weak_hub replication`") })
            #expect(complaints(weak).contains { $0.contains("EXECUTE on the functions of the schema roost") })
            try database.run(
                "grant execute on all functions in schema roost to weak_hub; alter role weak_hub replication")
            #expect(complaints(weak).filter { $0.hasPrefix("error") }.isEmpty)
            #expect { try Watcher.watch("t", capture: .wal, conninfo: weak.conninfo) } throws: {
                "\($0)".contains("may not create the publication roost")
            }
        }

        /// A server of its own, as it comes.
        @Test func aServerThatIsNotSetUp() throws {
            let database = try PostgresCluster(settings: "wal_level = replica").migratedDatabase().prepared(
                "create table t (id int primary key)")
            #expect { try Watcher.watch("t", capture: .wal, conninfo: database.conninfo) } throws: {
                "\($0)".contains("as wal_level is replica: run `alter system set wal_level = logical`")
            }
            #expect(complaints(database).contains { $0.hasPrefix("error: wal_level is replica") })
            #expect(complaints(database, readsWAL: false, about: ["capture"]).isEmpty)
        }
    }
}
