import Administration
import ChangeFeed
import Testing

@testable import PostgresFixtures

extension CommandTests {
    @Suite struct DoctorTests {
        func complaints(_ conninfo: String) -> [String] {
            Doctor.examineDatabase(conninfo: conninfo).filter { $0.severity != .good }.map {
                "\($0.subject): \($0.message)"
            }
        }

        @Test func unreachable() {
            #expect(complaints("host=/nowhere").first?.hasPrefix("postgres: Postgres cannot be reached") ?? false)
        }

        @Test func refused() throws {
            let database = try PostgresCluster.shared.database()
            let missing = database.conninfo.replacing("dbname=\(database.name)", with: "dbname=nowhere")
            #expect(complaints(missing).count == 1)
            #expect(complaints(missing).first?.hasPrefix("postgres: Postgres refuses the connection (") ?? false)
        }

        /// In a cluster of its own: roles belong to no database.
        @Test func missingRoles() throws {
            let database = try PostgresCluster().migratedDatabase().prepared("select 1")
            func roles() -> [String] { complaints(database.conninfo).filter { $0.hasPrefix("roles: ") } }
            func missing(_ role: String) -> String {
                "roles: The database has no role \(role), so tokens with that role get no row changes and enter no private "
                    + "channel; run `roost init --yes`."
            }
            #expect(
                roles() == [
                    "roles: The database has none of the roles that tokens name (anon, authenticated, service_role), so no client "
                        + "gets a row change or enters a private channel; run `roost init --yes`."
                ])
            try database.run("create role authenticated")
            #expect(roles() == [missing("anon"), missing("service_role")])
            #expect(
                Doctor.examineDatabase(conninfo: database.conninfo).contains {
                    $0.subject == "roles" && $0.severity == .error
                })
            // Tokens may name roles of one's own.
            try database.run("create role web_user; grant web_user to postgres")
            #expect(roles() == [missing("anon"), missing("service_role")])
            #expect(
                !Doctor.examineDatabase(conninfo: database.conninfo).contains {
                    $0.subject == "roles" && $0.severity == .error
                }
            )
            _ = try ClientRoles.createRoles(ClientRoles.Request(), conninfo: database.conninfo)
            #expect(roles().isEmpty)
            #expect(try ClientRoles.plan(ClientRoles.Request(), conninfo: database.conninfo).statements == [])
        }

        @Test func readers() throws {
            let database = try PostgresCluster.shared.database()
            try database.createClientRoles()
            _ = try database.prepared(
                "create table seen (n int); create table hidden (n int, m int)", watching: "seen", "hidden")
            func readers() -> [String] { complaints(database.conninfo).filter { $0.hasPrefix("readers: ") } }
            func nobody(_ table: String) -> String {
                "readers: No role that tokens name may read public.\(table), so no client gets its changes; run "
                    + "`roost init public.\(table) --yes`, which lets authenticated read it, or unwatch it."
            }
            #expect(readers() == [nobody("hidden"), nobody("seen")])
            try database.run("grant select (n) on hidden to anon")
            #expect(readers() == [nobody("seen")])
            let request = ClientRoles.Request(tables: ["seen"], includesVisitors: true)
            let done = try ClientRoles.createRoles(request, conninfo: database.conninfo)
            #expect(done.statements.last == "grant select on public.seen to anon, authenticated, service_role")
            #expect(readers().isEmpty)
        }

        @Test func stages() throws {
            let database = try PostgresCluster.shared.database()
            try database.createClientRoles()
            #expect(complaints(database.conninfo) == ["schema: The database has no schema roost; run `roost migrate`."])
            _ = try database.prepared("create table t (n int) partition by range (n)")
            #expect(complaints(database.conninfo) == ["tables: No table is watched; run `roost watch TABLE`."])
            try Watcher.watch("t", conninfo: database.conninfo)
            try database.run("grant select on t to authenticated")
            #expect(complaints(database.conninfo).isEmpty)
            try database.run("create table t1 partition of t for values from (0) to (9)")
            #expect(complaints(database.conninfo).first?.contains("lacks some of roost's triggers") ?? false)
        }

        @Test func missingRights() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            try database.run(
                "do $$ begin create role nobody_much login; exception when duplicate_object then null; end $$")
            let conninfo = database.conninfo.replacing("user=postgres", with: "user=nobody_much")
            #expect(complaints(conninfo).first?.contains("grant USAGE on schema roost") ?? false)
            try database.run("grant usage on schema roost to nobody_much; grant select on roost.meta to nobody_much")
            #expect(complaints(conninfo).filter { $0.hasPrefix("rights:") }.count == 22)
        }
    }
}
