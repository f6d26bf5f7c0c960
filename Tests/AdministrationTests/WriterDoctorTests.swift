import Administration
import ChangeFeed
import Testing

@testable import PostgresFixtures

extension CommandTests {
    /// What `roost doctor` says of writers that fire no triggers.
    @Suite struct WriterDoctorTests {
        let database: Database

        init() throws {
            database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int); create table other (n int)", watching: "t")
        }

        func writers() -> [String] {
            Doctor.examineDatabase(conninfo: database.conninfo).filter { $0.subject == "writers" }.map {
                "\($0.severity.rawValue): \($0.message)"
            }
        }

        @Test func logicalReplicationIntoAWatchedTable() throws {
            let publisher = try PostgresCluster.shared.database()
            try publisher.run(
                "create table t (n int); create table other (n int); create publication p for table other")
            try database.run(
                """
                create subscription copied connection '\(publisher.conninfo)' publication p
                with (enabled = false, create_slot = false, slot_name = none, copy_data = false)
                """)
            defer { #expect(throws: Never.self) { try database.run("drop subscription copied") } }
            #expect(writers().isEmpty)
            try publisher.run("alter publication p add table t")
            try database.run("drop subscription copied")
            try database.run(
                """
                create subscription copied connection '\(publisher.conninfo)' publication p
                with (enabled = false, create_slot = false, slot_name = none, copy_data = false)
                """)
            #expect(writers().count == 1)
            #expect(writers().first?.hasPrefix("error: The subscription copied writes into public.t by") ?? false)
        }

        @Test func triggersThatASettingSilences() throws {
            try database.run(
                "do $$ begin create role loader login; exception when duplicate_object then null; end $$")
            let name = database.name
            try database.run("alter role loader in database \(name) set session_replication_role = replica")
            #expect(writers().isEmpty, "they fire then, too: \(writers())")
            // As an older version made them.
            try database.run("alter table t enable trigger all")
            #expect(writers().first?.hasPrefix("warning: Roost's triggers on public.t do not fire where") ?? false)
            #expect(
                writers().last?.hasPrefix(
                    "error: The role loader in the database \(name) has session_replication_role")
                    ?? false, "\(writers())")
            #expect(
                writers().last?.contains("`alter role loader in database \(name) reset session_replication_role`")
                    ?? false)
            try database.run("alter role loader in database \(name) reset session_replication_role")
            #expect(writers().count == 1)
            let restoring = try database.session()
            try restoring.runScript("set session_replication_role = 'replica'")
            #expect(writers().last?.contains("pg_terminate_backend(\(restoring.backendID))") ?? false, "\(writers())")
        }

        /// What another database's sessions and roles do there is none of this one's.
        @Test func otherDatabasesAreTheirOwn() throws {
            let other = try PostgresCluster.shared.database()
            try database.run(
                """
                do $$ begin create role importer login; exception when duplicate_object then null; end $$;
                alter role importer in database \(other.name) set session_replication_role = replica;
                alter database \(other.name) set session_replication_role = replica
                """)
            let restoring = try other.session()
            try restoring.runScript("set session_replication_role = 'replica'")
            #expect(writers().isEmpty)
        }

        /// Set where a session looks last: on the server, or for all by what they connect with.
        @Test func aServerWhereAllAreSilent() throws {
            try database.run("alter table t enable trigger all")
            let silent = "\(database.conninfo) options='-c session_replication_role=replica'"
            let found = Doctor.examineDatabase(conninfo: silent).filter { $0.subject == "writers" }.map(\.message)
            #expect(found.count == 2)
            #expect(found.first?.contains("`alter system reset session_replication_role`") ?? false)
        }

        @Test func aDatabaseWhereAllAreSilent() throws {
            try database.run("alter table t enable trigger all")
            try database.run("alter database \(database.name) set session_replication_role = replica")
            let found = writers()
            #expect(found.contains { $0.contains("`alter database \(database.name) reset session_replication_role`") })
        }
    }
}
