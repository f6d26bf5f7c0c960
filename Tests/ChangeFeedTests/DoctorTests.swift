import Administration
import ChangeFeed
import Testing

extension FeedTests {
    @Suite struct DoctorTests {
        func complaints(_ conninfo: String) -> [String] {
            Doctor.examine(conninfo: conninfo).filter { $0.severity != .good }.map { "\($0.subject): \($0.message)" }
        }

        @Test func unreachable() {
            #expect(complaints("host=/nowhere").first?.hasPrefix("postgres: Postgres cannot be reached") ?? false)
        }

        @Test func stages() throws {
            let database = try PostgresCluster.shared.database()
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
            #expect(complaints(conninfo).filter { $0.hasPrefix("rights:") }.count == 16)
        }
    }
}
