import Administration
import ChangeFeed
import Foundation
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// The capture of a table is interrupted, and perhaps put right again before any hub looks: whoever may lack changes is told.
    @Suite struct InterruptionTests {
        private static let binding = #"{"event":"*","schema":"public","table":"t"}"#
        private static let published = #"{"event":"*","schema":"public","table":"p"}"#

        private static func prepared() throws -> Database {
            let database = try PostgresCluster.shared.migratedDatabase().chat().also(
                """
                create table t (n int primary key); grant select on t to authenticated;
                create table p (n int primary key); grant select on p to authenticated;
                create table o (n int primary key);
                create table parts (n int) partition by range (n);
                create table part1 partition of parts for values from (0) to (10);
                """, watching: "t")
            for table in ["o", "parts"] { try Watcher.watch(table, conninfo: database.conninfo) }
            try database.run("create publication roost for table p with (publish_via_partition_root = true)")
            return database
        }

        /// `$hole` is where a row is written that nobody captures.
        static let interruptions = [
            "alter table t disable trigger roost_insert; $hole; alter table t enable trigger roost_insert",
            "alter table t disable trigger all; $hole; alter table t enable trigger all",
            "alter table t enable replica trigger roost_insert; $hole; alter table t enable trigger roost_insert",
            "drop trigger roost_insert on t; $hole; $watch",
            "$unwatch; $hole; $watch",
            """
            alter table t rename to older; create table t (like older including all);
            grant select on t to authenticated; $hole; $watch
            """,
            "drop table t; create table t (n int primary key); grant select on t to authenticated; $hole; $watch",
            """
            do $$ begin execute regexp_replace(pg_get_functiondef('roost.on_insert()'::regprocedure), 'begin', 'begin
            return null;'); end $$; $hole
            """,
            "alter publication roost drop table p; $hole; alter publication roost add table p",
            """
            alter publication roost set (publish = 'update'); $hole;
            alter publication roost set (publish = 'insert, update, delete, truncate')
            """,
            // This one and the next take Postgres 15.
            """
            alter publication roost set table p where (n < 0); $hole; alter publication roost set table p
            """,
            "alter publication roost set table p (n); $hole; alter publication roost set table p",
            "drop publication roost; $hole; create publication roost for table p with (publish_via_partition_root = true)",
            "alter table part1 disable trigger all; $hole; alter table part1 enable trigger all",
        ]

        private static func perform(_ script: String, on database: Database) throws {
            for part in script.components(separatedBy: "$watch") {
                let halves = part.components(separatedBy: "$unwatch;")
                if halves.count > 1 { try Watcher.unwatch("t", conninfo: database.conninfo) }
                let sql = (halves.last ?? "").replacing("$hole", with: "insert into t values (100)")
                if !sql.trimmingCharacters(in: .whitespaces).isEmpty { try database.run(sql) }
                if part != script.components(separatedBy: "$watch").last {
                    try Watcher.watch("t", conninfo: database.conninfo)
                }
            }
        }

        private static func isPossible(_ script: String, on database: Database) throws -> Bool {
            try !script.contains("set table") || database.serverVersion() >= 150_000
        }

        @Test(arguments: interruptions) func beforeTheEyesOfAHub(script: String) throws {
            let database = try Self.prepared()
            guard try Self.isPossible(script, on: database) else { return }
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t values (1)")
                try eventually("one") { stage.count == 1 }
                let cursor = try #require(stage.seen.last?.cursor)
                try Self.perform(script, on: database)
                try eventually("a gap") { !stage.gapsAt.isEmpty }
                // As at a client that comes back.
                let here = script.contains("create table t") ? try stage.join(Self.binding, as: "ann") : group
                #expect(try stage.recovery(of: here, from: .cursor(cursor)).start == .refused(.tooOld))
                // The command tells of it by itself.
                #expect(stage.statistics.interruptions > 0 || script.contains("watch"))
            }
        }

        @Test(arguments: interruptions) func whileNoHubRuns(script: String) throws {
            let database = try Self.prepared()
            guard try Self.isPossible(script, on: database) else { return }
            var cursor = ""
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t values (1)")
                try eventually("one") { stage.count == 1 }
                cursor = try #require(stage.seen.last?.cursor)
            }
            try Self.perform(script, on: database)
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                #expect(try stage.recovery(of: group, from: .cursor(cursor)).start == .refused(.tooOld))
            }
        }

        /// Where the command changes a table over, or nothing of the capture changes, nobody loads anything anew.
        @Test func whatInterruptsNothing() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t values (1)")
                try eventually("one") { stage.count == 1 }
                let cursor = try #require(stage.seen.last?.cursor)
                for script in [
                    "alter table t add x int", "create index on t (x)", "alter table t drop x",
                    "vacuum full pg_trigger",
                    "alter table t rename to u", "alter table u rename to t", "drop table part1",
                    "create table part2 partition of parts for values from (10) to (20)",
                    "alter table t enable row level security", "alter table t disable row level security",
                    "grant select on t to anon", "drop table o", "create index on t (n)",
                    """
                    create trigger mine before update on t for each row execute function suppress_redundant_updates_trigger()
                    """,
                    "grant execute on function roost.on_insert() to anon", "create table q (n int primary key)",
                    "alter publication roost add table q",
                ] { try database.run(script) }
                try Watcher.watch("t", conninfo: database.conninfo)
                try Watcher.watch("parts", conninfo: database.conninfo)
                try stage.settleQuietly(database)
                #expect(stage.gapsAt.isEmpty && stage.statistics.interruptions == 0)
                #expect(try stage.recovery(of: group, from: .cursor(cursor)).start == .resumed)
            }
        }

        /// A restore and a bulk load may write under a setting that silences triggers: not roost's. What an older version's `roost
        /// watch` made is renewed without a gap.
        @Test func noSettingSilencesTheTriggers() throws {
            let database = try Self.prepared()
            for table in ["t", "parts"] { try database.run("alter table \(table) enable trigger all") }
            try database.run("alter table part1 enable trigger all; delete from roost.captured")
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t values (1)")
                try eventually("one") { stage.count == 1 }
                let cursor = try #require(stage.seen.last?.cursor)
                #expect(try Watcher.watch("t", conninfo: database.conninfo).changed == ["t"])
                #expect(try Watcher.watch("parts", conninfo: database.conninfo).changed == ["part1", "parts"])
                #expect(try Watcher.watch("t", conninfo: database.conninfo).changed.isEmpty)
                try database.run(
                    """
                    set session_replication_role = replica;
                    insert into t values (2); update t set n = 3 where n = 2; delete from t where n = 3;
                    reset session_replication_role
                    """)
                try eventually("all of it") { stage.count == 4 }
                try stage.settleQuietly(database)
                #expect(stage.gapsAt.isEmpty && stage.statistics.interruptions == 0)
                #expect(try stage.recovery(of: group, from: .cursor(cursor)).start == .resumed)
            }
        }

        /// A watched table that was put away by renaming, and its heir.
        @Test func aTableInAnothersPlaceIsNamed() throws {
            let database = try Self.prepared()
            let log = Notes()
            try SubscriberStage.with(database, logger: .noting(log)) { stage in
                _ = try stage.join(Self.binding, as: "ann")
                try database.run("alter table t rename to older; create table t (n int primary key)")
                try eventually("a line of the log") {
                    log.all.contains { $0.contains("public.t is another table than the one that was watched") }
                }
                let found = Doctor.examineDatabase(conninfo: database.conninfo)
                #expect(found.contains { $0.severity == .error && $0.message.contains("`roost watch public.t`") })
                try Watcher.watch("t", conninfo: database.conninfo)
                let after = Doctor.examineDatabase(conninfo: database.conninfo)
                #expect(!after.contains { $0.message.contains("another table") })
            }
        }
    }
}
