import Administration
import ChangeFeed
import Schema
import Testing

@testable import PostgresFixtures

extension CommandTests {
    @Suite struct MigrationTests {
        let database: Database

        init() throws { database = try PostgresCluster.shared.database() }

        @Test func installsAndRepeats() throws {
            let first = try Migrator.migrate(conninfo: database.conninfo)
            #expect(first.from == 0 && first.to == RoostSchema.currentVersion)
            let second = try Migrator.migrate(conninfo: database.conninfo)
            #expect(second.from == RoostSchema.currentVersion)
        }

        @Test func twoAtOnce() throws {
            let conninfo = database.conninfo
            try concurrently(3) { _ in try Migrator.migrate(conninfo: conninfo) }
        }

        @Test func printedScriptIsTheSame() throws {
            try database.run(Migrator.script)
            #expect(try Migrator.migrate(conninfo: database.conninfo).from == RoostSchema.currentVersion)
        }

        @Test func refusesNewerSchema() throws {
            try Migrator.migrate(conninfo: database.conninfo)
            try database.run("update roost.meta set schema_version = 99")
            #expect { try Migrator.migrate(conninfo: database.conninfo) } throws: { "\($0)".contains("newer") }
        }

        @Test func refusesSchemaOfBeforeTheRelease() throws {
            try Migrator.migrate(conninfo: database.conninfo)
            try database.run("update roost.meta set schema_version = \(RoostSchema.baseVersion - 1)")
            #expect { try Migrator.migrate(conninfo: database.conninfo) } throws: {
                "\($0)".contains("drop schema roost")
            }
            #expect(
                Doctor.examineDatabase(conninfo: database.conninfo).contains {
                    $0.subject == "schema" && $0.message.contains("drop schema roost")
                })
        }

        @Test func unreachableDatabaseIsOneSentence() {
            #expect { try Migrator.migrate(conninfo: "host=/nowhere") } throws: {
                "\($0)".contains("ROOST_DATABASE_URL") && !"\($0)".contains("\n")
            }
            #expect { try Migrator.migrate(conninfo: "nonsense") } throws: { "\($0)".contains("cannot be read") }
        }

        @Test func ordinaryOwnerDoesItAll() throws {
            try database.createClientRoles()
            try database.run(
                """
                do $$ begin
                    create role plain login; exception when duplicate_object then null;
                end $$;
                do $$ begin execute format('grant create on database %I to plain', current_database()); end $$;
                grant create on schema public to plain;
                grant anon, authenticated, service_role to plain;
                """)
            let conninfo = database.conninfo.replacing("user=postgres", with: "user=plain")
            try Migrator.migrate(conninfo: conninfo)
            let own = Database(conninfo: conninfo)
            try own.run("create table t (id int primary key); grant select on t to authenticated")
            try Watcher.watch("t", conninfo: conninfo)
            #expect(try own.changes(of: "insert into t values (1)", count: 1) == ["INSERT {\"id\":1}"])
            #expect(Doctor.examineDatabase(conninfo: conninfo).allSatisfy { $0.severity == .good })
        }

        /// What every hub calls, whichever role it is.
        @Test func revokedDefaultPrivilegesStopNoHub() throws {
            try database.run("alter default privileges revoke execute on functions from public")
            try Migrator.migrate(conninfo: database.conninfo)
            for name in ["note_captures", "settle_captures"] {
                let granted = try database.value(
                    "select has_function_privilege('public', 'roost.\(name)()', 'execute')")
                #expect(granted == "t", "\(name)")
            }
        }

        @Test func feedSaysWhatToRunAndGoesOn() throws {
            let collector = Collector()
            let feed = ChangeFeed(
                configuration: FeedConfiguration(conninfo: database.conninfo), logger: .silent, consumer: collector)
            feed.start()
            defer { feed.stop() }
            try eventually("the reason") {
                if case .connecting(let reason?) = feed.status { return reason.contains("run `roost migrate`") }
                return false
            }
            try Migrator.migrate(conninfo: database.conninfo)
            try eventually("the feed is ready") { feed.status == .ready }
        }
    }
}
