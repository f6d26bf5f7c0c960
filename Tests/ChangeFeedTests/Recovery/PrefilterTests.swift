import ChangeFeed
import Foundation
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What members are brought whose filters Postgres looks for.
    @Suite struct PrefilterTests {
        private static let room = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"

        private static let filters = [
            "room=eq.\(room)", "room=in.(\(room),b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11)", "n=eq.+7", "n=in.(1,2,null)",
            "kind=eq.plain", #"kind=eq.a"b"#, "kind=eq.größer", "n=gt.30", "n=eq.7,kind=eq.plain", "kind=like.p%",
            "n=neq.3",
        ]

        private static func prepared() throws -> Database {
            try PostgresCluster.shared.migratedDatabase().chat().also(
                """
                create table t (id int primary key, room uuid, n int, kind text, body text);
                alter table t replica identity full;
                grant select on t to authenticated
                """, watching: "t")
        }

        private static func write(_ database: Database, _ random: inout some RandomNumberGenerator, rows: Int) throws {
            let session = try database.session()
            for id in 0..<rows {
                let room = ["a0eebc99", "b0eebc99", "c0eebc99"].randomElement(using: &random) ?? ""
                let kind = ["plain", #"a"b"#, "größer", "plainer", #"{"n":7}"#].randomElement(using: &random) ?? ""
                // Below what is looked into, above it, and above what is kept.
                let size = id == 40 ? 1_100_000 : id % 9 == 0 ? 6000 : 10
                try session.runScript(
                    """
                    insert into t values (\(id), '\(room)-9c0b-4ef8-bb6d-6bb9bd380a11', \(Int.random(in: 0..<40, using: &random)), \
                    '\(kind)', (select string_agg(md5(i::text), '') from generate_series(1, \(size / 32 + 1)) i))
                    """)
                let other = Int.random(in: 0...id, using: &random)
                switch Int.random(in: 0..<6, using: &random) {
                case 0: try session.runScript("update t set n = 7, room = '\(Self.room)' where id = \(other)")
                case 1: try session.runScript("update t set n = null, kind = 'plain' where id = \(other)")
                case 2: try session.runScript("delete from t where id = \(other)")
                default: break
                }
            }
        }

        @Test func membersWithFiltersAreBroughtWhatTheyWouldHaveSeen() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let first = try stage.join(#"{"event":"*","schema":"public","table":"t"}"#, as: "ann")
                let groups = try Self.filters.map { filter in
                    try stage.join(
                        #"{"event":"*","schema":"public","table":"t","filter":"\#(filter.replacing("\"", with: "\\\""))"}"#,
                        as: "ann")
                }
                for group in groups { #expect(stage.refusal(group) == nil) }
                try database.run("insert into t (id) values (-1)")
                try stage.settleQuietly(database)
                let start = try #require(stage.seen.last { $0.group == first })
                var random = SystemRandomNumberGenerator()
                try Self.write(database, &random, rows: 150)
                try stage.settleQuietly(database)
                let seen = stage.seen
                var told = 0
                for (group, filter) in zip(groups, Self.filters) {
                    let live = seen.filter { $0.group == group && !$0.data.contains(#""id":-1,"#) }.map(\.data)
                    let recovered = try stage.recovery(of: group, from: .cursor(start.cursor))
                    #expect(recovered.start == .resumed)
                    #expect(recovered.changes.map(\.data) == live, "\(filter)")
                    told += live.count
                }
                #expect(told > 300)
                // Served by one reading, and so by one condition for all.
                let ids = try groups.map { try stage.recover($0, as: "ann", from: .cursor(start.cursor)) }
                try eventually("all recoveries are over") { stage.unfinished == 0 }
                for (group, id) in zip(groups, ids) {
                    let live = seen.filter { $0.group == group && !$0.data.contains(#""id":-1,"#) }.map(\.data)
                    #expect(stage.recovered(id).changes.map(\.data) == live)
                }
            }
        }

        /// What a filter matched was written otherwise then.
        @Test func aColumnOfAnotherTypeIsLookedAtRowByRow() throws {
            let database = try Self.prepared().also(
                "create table u (id int primary key, room text); grant select on u to authenticated", watching: "u")
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let all = try stage.join(#"{"event":"*","schema":"public","table":"u"}"#, as: "ann")
                try database.run("insert into u values (0, 'none')")
                try eventually("the first row") { stage.seen.contains { $0.group == all } }
                let start = try #require(stage.seen.last)
                try database.run("insert into u values (1, '{\(Self.room)}'); delete from u where id = 0")
                try database.run("alter table u alter room type uuid using room::uuid")
                try database.run("insert into u values (2, '\(Self.room)')")
                try stage.settleQuietly(database)
                let group = try stage.join(
                    #"{"event":"*","schema":"public","table":"u","filter":"room=eq.\#(Self.room)"}"#, as: "ann")
                #expect(stage.refusal(group) == nil)
                let recovered = try stage.recovery(of: group, from: .cursor(start.cursor))
                #expect(recovered.changes.count == 2)
            }
        }

        /// What is near comes by a slice, what is known to be far by a scan at once; one reading in both cases.
        @Test(arguments: [1900, 7000])
        func whatConcernsNobodyIsPassedOver(rows: Int) throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let group = try stage.join(
                    #"{"event":"*","schema":"public","table":"t","filter":"room=eq.\#(Self.room)"}"#, as: "ann")
                // A mark comes a little later than its change.
                for id in 1...2 {
                    let mark = stage.marks.last ?? 0
                    try database.run("insert into t values (-\(id), '\(Self.room)')")
                    try eventually("row \(id) and its mark") { stage.count == id && stage.marks.last ?? 0 > mark }
                }
                let mark = try #require(stage.marks.last)
                try database.run(
                    """
                    insert into t select i, (case when i % 1000 = 0 then '\(Self.room)'
                        else 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' end)::uuid, i, 'plain', 'text'
                    from generate_series(1, \(rows)) i
                    """)
                // When the place was stored nothing moves the present any more, for which another look would be taken.
                try eventually("the place behind them is stored") {
                    try database.value(
                        "select 1 from roost.cursor where pg_snapshot_xmax(snapshot) > "
                            + "(select xid from roost.change order by xid desc limit 1)") != nil
                }
                try stage.settleQuietly(database)
                // The hub's own upkeep moves the present, too: where it did in between, another look was due, and it counts
                // what comes next.
                var readings: [Int] = []
                repeat {
                    let before = stage.statistics.recoveryReads
                    let recovered = try stage.recovery(of: group, from: .mark(mark))
                    #expect(recovered.changes.count { !$0.data.contains(#""id":-"#) } == rows / 1000)
                    try stage.settleQuietly(database)
                    readings.append(stage.statistics.recoveryReads - before)
                } while readings.last != 1 && readings.count < 4
                #expect(readings.last == 1, "\(readings)")
            }
        }
    }
}
