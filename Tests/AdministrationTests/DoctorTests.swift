import Administration
import ChangeFeed
import Testing

@testable import PostgresFixtures

extension CommandTests {
    @Suite struct DoctorTests {
        func complaints(_ conninfo: String) -> [String] {
            Doctor.examine(conninfo: conninfo).filter { $0.severity != .good }.map { "\($0.subject): \($0.message)" }
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
            let database = try PostgresCluster().database().prepared("select 1")
            func roles() -> [String] { complaints(database.conninfo).filter { $0.hasPrefix("roles: ") } }
            func missing(_ role: String) -> String {
                "roles: The database has no role \(role), so tokens with that role get no row changes and enter no private "
                    + "channel; if your clients have such tokens, run `create role \(role)` and grant it what they may read."
            }
            #expect(roles() == [missing("anon"), missing("authenticated"), missing("service_role")])
            try database.run("create role anon; create role authenticated")
            #expect(roles() == [missing("service_role")])
            try database.run("create role service_role")
            #expect(roles().isEmpty)
        }

        @Test func stages() throws {
            let database = try PostgresCluster.shared.database()
            try database.createClientRoles()
            #expect(complaints(database.conninfo) == ["schema: The database has no schema roost; run `roost migrate`."])
            _ = try database.prepared("create table t (n int) partition by range (n)")
            #expect(complaints(database.conninfo) == ["tables: No table is watched; run `roost watch TABLE`."])
            try Watcher.watch("t", conninfo: database.conninfo)
            #expect(complaints(database.conninfo).isEmpty)
            try database.run("create table t1 partition of t for values from (0) to (9)")
            #expect(complaints(database.conninfo).first?.contains("lacks some of roost's triggers") ?? false)
        }

        @Test func missingRights() throws {
            let database = try PostgresCluster.shared.database().prepared("create table t (n int)", watching: "t")
            try database.run(
                "do $$ begin create role nobody_much login; exception when duplicate_object then null; end $$")
            let conninfo = database.conninfo.replacing("user=postgres", with: "user=nobody_much")
            #expect(complaints(conninfo).first?.contains("grant USAGE on schema roost") ?? false)
            try database.run("grant usage on schema roost to nobody_much; grant select on roost.meta to nobody_much")
            #expect(complaints(conninfo).filter { $0.hasPrefix("rights:") }.count == 17)
        }
    }
}
