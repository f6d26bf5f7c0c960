import ChangeFeed
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Whatever type a column has, its values read as Postgres itself makes JSON of the row.
    @Suite struct TypeTests {
        @Test func everyTypeReadsAsPostgresWritesIt() throws {
            let database = try PostgresCluster.shared.database()
            let values = try TypeSamples.values(in: database)
            let columns = values.indices.map { "c\($0) \(values[$0].type)" }.joined(separator: ", ")
            _ = try database.prepared(
                """
                \(TypeSamples.types);
                create table t (id int primary key, \(columns))
                """, watching: "t")
            try database.withFeed { feed, collector in
                let session = try database.session()
                let most = values.map(\.values.count).max() ?? 0
                // The last row is empty.
                for id in 0...most {
                    let chosen = values.map { id < $0.values.count ? $0.values[id] : "null" }
                    try session.runScript(
                        #"set "TimeZone" = 'Asia/Kolkata'; set extra_float_digits = 0; set bytea_output = 'escape'"#)
                    try session.runScript("insert into t values (\(id), \(chosen.joined(separator: ", ")))")
                }
                try eventually("all rows") { collector.count == most + 1 }
                try session.runScript(
                    #"set "TimeZone" = 'UTC'; set extra_float_digits = 1; set bytea_output = 'hex'"#)
                for (id, seen) in collector.seen.enumerated() {
                    let row = try session.queryRows("select row_to_json(t)::text from t where id = $1", ["\(id)"])
                    #expect(seen.record == row.first?.first ?? nil)
                }
                try session.runScript("update t set id = id + 100; delete from t")
                try eventually("updates and deletes") { collector.count == 3 * (most + 1) }
                let (inserted, deleted) = (collector.seen.prefix(most + 1), collector.seen.suffix(most + 1))
                for (one, other) in zip(inserted, deleted) {
                    let (first, last) = (one.record ?? "", other.old ?? "")
                    #expect(first.drop { $0 != "," } == last.drop { $0 != "," })
                }
            }
        }
    }
}
