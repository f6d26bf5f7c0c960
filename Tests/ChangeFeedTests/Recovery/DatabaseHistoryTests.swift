import Administration
import ChangeFeed
import Foundation
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// A database that is not what it was: restored, put back, copied, emptied. What clients lack they are brought, or they
    /// are told that they lack it.
    @Suite struct DatabaseHistoryTests {
        private static let binding = #"{"event":"*","schema":"public","table":"t"}"#

        private static func prepared(_ cluster: PostgresCluster) throws -> Database {
            try cluster.migratedDatabase().chat().also(
                "create table t (n int primary key); grant select on t to authenticated", watching: "t")
        }

        private static func keys(_ changes: [SubscriberStage.Seen]) -> [Int] {
            changes.compactMap { seen in
                ResumeTests.key(seen.data).firstMatch(of: /"n":(\d+)/).flatMap { Int($0.output.1) }
            }
        }

        /// A database with much behind it, of which all that clients were told is older than what comes.
        private static func old(_ cluster: PostgresCluster) throws -> (database: Database, cursor: String) {
            let database = try prepared(cluster)
            try database.spend(4000)
            var cursor = ""
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(binding, as: "ann")
                try database.run("insert into t select generate_series(0, 9)")
                try eventually("ten") { stage.count == 10 }
                cursor = try #require(stage.seen.first?.cursor)
                try database.run("insert into t values (100)")
                try eventually("eleven") { stage.count == 11 }
                // The highest that is gone is far ahead of the server that the dump goes to.
                try database.run("delete from roost.change where record ->> 'n' = '100'")
                try database.run("select realtime.send('{}', 'old', 'room', false)")
                try eventually("the broadcast") { stage.broadcasts.count == 1 }
                try stage.settleQuietly(database)
            }
            return (database, cursor)
        }

        /// A new process on a cluster whose transactions have lower numbers.
        @Test func restoredDumpBeginsAnew() throws {
            let (database, cursor) = try Self.old(.shared)
            let copy = try PostgresCluster.restarted.restored(from: database)
            #expect(try copy.value("select pruned_xid is not null from roost.meta") == "t")
            try copy.run("insert into t values (20)")
            try SubscriberStage.with(copy, recoveryWindow: .seconds(60)) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                try copy.run("insert into t values (21)")
                try eventually("a row") { stage.count > 0 && stage.marks.last != nil }
                try stage.settleQuietly(copy)
                #expect(Self.keys(stage.seen).last == 21 && stage.count <= 2)
                #expect(stage.broadcasts.isEmpty, "those of the dump are not told again")
                #expect(try stage.recovery(of: group, from: .cursor(cursor)).start == .refused(.otherDatabase))
                // Whoever comes back is brought what was written since the restore.
                let restart = try stage.recovery(of: group, from: .restart)
                #expect(restart.start == .resumed && Self.keys(restart.changes) == [20, 21])
                let mine = try stage.recovery(of: group, from: .cursor(try #require(stage.seen.last?.cursor)))
                #expect(mine.start == .resumed && mine.changes.isEmpty)
            }
            #expect(try copy.value("select pruned_xid from roost.meta") == nil)
            #expect(try copy.value("select count(*) from roost.change where xid > pg_current_xact_id()") == "0")
        }

        /// The numbers of the dump come round: its changes must not be taken for new ones.
        @Test func changesOfTheDumpAreNeverTold() throws {
            let (database, _) = try Self.old(.shared)
            let copy = try PostgresCluster.restarted.restored(from: database)
            let collector = Collector()
            try copy.withFeed(collector: collector) { feed, _ in
                // As a restore into the tables of a hub that runs.
                // Further ahead than the hub's own transactions come meanwhile, on a busy machine too.
                let ahead = "pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 500"
                try copy.run(
                    """
                    insert into roost.change (xid, relid, op, record)
                    select (\(ahead))::text::xid8, 't'::regclass, 'I', '{"n":500}' union all
                    select (\(ahead))::text::xid8, 'realtime.messages'::regclass, 'M', record
                    from (select record from roost.change where op = 'M' limit 1) m
                    """)
                for n in 0..<3 {
                    let polls = feed.statistics.polls
                    try copy.run("notify roost")
                    try eventually("poll \(n)") { feed.statistics.polls > polls + 2 }
                }
                #expect(collector.count == 0 && collector.broadcasts.isEmpty)
            }
            try copy.withFeed(collector: collector) { _, _ in
                try copy.spend(1000)
                try copy.run("insert into t values (30)")
                try eventually("the new row") { collector.count > 0 }
                #expect(collector.lines == [#"INSERT {"n":30}"#] && collector.broadcasts.isEmpty)
            }
        }

        /// The process lives on while its database moves to another cluster: what was written since is brought to its
        /// clients, live and to those that come back.
        @Test func aDumpUnderALivingHub() throws {
            let (from, to) = (PostgresCluster(), PostgresCluster())
            // Both are called test1, and the copy is there before the original ends.
            let database = try Self.prepared(from)
            try database.spend(4000)
            let log = Notes()
            try SubscriberStage.with(database.orAt(to, from), logger: .noting(log), oldestMark: { 0 }) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t select generate_series(0, 4)")
                try eventually("five, and a mark") { stage.count == 5 && !stage.marks.isEmpty }
                let (mark, cursor) = (try #require(stage.marks.first), stage.seen[2].cursor)
                let copy = try to.restored(from: database)
                try copy.run("insert into t values (5)")
                try from.stop("immediate")
                try eventually("what was written since") { Self.keys(stage.seen) == Array(0...5) }
                try copy.run("insert into t values (6)")
                try eventually("what comes") { stage.count == 7 }
                for point in [RecoveryPoint.mark(mark), .mark(0), .restart] {
                    let recovered = try stage.recovery(of: group, from: point)
                    #expect(recovered.start == .resumed && Self.keys(recovered.changes) == [5, 6], "\(point)")
                }
                #expect(try stage.recovery(of: group, from: .cursor(cursor)).start == .refused(.otherDatabase))
            }
            #expect(log.all.contains { $0.contains("restored from a dump") })
        }

        /// pg_upgrade makes a new server with the same files, and the numbers go on.
        @Test func aNewSystemIdentifierAlone() throws {
            let database = try Self.prepared(.shared)
            var cursor = ""
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t values (1), (2)")
                try eventually("two") { stage.count == 2 }
                cursor = stage.seen[0].cursor
            }
            try database.run("update roost.cursor set system_identifier = 1; insert into t values (3)")
            try SubscriberStage.with(database, recoveryWindow: .seconds(60)) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                let resumed = try stage.recovery(of: group, from: .cursor(cursor))
                #expect(resumed.start == .resumed && Self.keys(resumed.changes) == [2, 3])
                let restart = try stage.recovery(of: group, from: .restart)
                #expect(restart.start == .resumed && Self.keys(restart.changes).contains(3))
            }
        }

        /// What writes the table of epochs anew and is no restore: pg_repack copies rows, and the table stays the same.
        @Test(arguments: [
            "vacuum full roost.epoch", "cluster roost.epoch using epoch_pkey", "vacuum freeze roost.epoch",
            "create temp table e as table roost.epoch; delete from roost.epoch; insert into roost.epoch table e",
        ])
        func aTableThatIsWrittenAnew(_ script: String) throws {
            let database = try Self.prepared(.shared)
            var cursor = ""
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t values (1), (2)")
                try eventually("two") { stage.count == 2 }
                cursor = stage.seen[0].cursor
            }
            try database.run(script)
            try database.run("insert into t values (3)")
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                let resumed = try stage.recovery(of: group, from: .cursor(cursor))
                #expect(resumed.start == .resumed && Self.keys(resumed.changes) == [2, 3])
                #expect(try database.value("select xmin = born::xid from roost.epoch where id = 0") == "t")
            }
        }

        /// The data directory of before; nothing in the database is different but that it is older.
        @Test func filesThatWerePutBack() throws {
            let cluster = PostgresCluster()
            let database = try Self.prepared(cluster)
            let copy = try cluster.copyOfFiles()
            var cursor = ""
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                for n in 0..<5 { try database.run("insert into t values (\(n))") }
                try eventually("five") { stage.count == 5 }
                cursor = stage.seen[2].cursor
                #expect(Self.keys(try stage.recovery(of: group, from: .cursor(cursor)).changes) == [3, 4])
            }
            try cluster.putBack(copy)
            try cluster.start()
            // Far enough that the cursor no longer lies ahead.
            try database.spend(200)
            try database.run("insert into t select generate_series(100, 109)")
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                #expect(try stage.recovery(of: group, from: .cursor(cursor)).start == .refused(.otherDatabase))
            }
        }

        /// A backup of a moment ago, under a hub that lives: its last epoch is in the backup, and a cursor that is younger
        /// cannot be told from one that the database has. Nothing is lost all the same.
        @Test func aBackupOfAMomentAgo() throws {
            let cluster = PostgresCluster(settings: "max_wal_senders = 4")
            let database = try Self.prepared(cluster)
            let log = Notes()
            try SubscriberStage.with(database, logger: .noting(log), oldestMark: { 0 }) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t values (0)")
                try eventually("a row, and a mark") { stage.count == 1 && !stage.marks.isEmpty }
                let backup = try cluster.backup()
                for n in 1..<5 { try database.run("insert into t values (\(n))") }
                try eventually("five, and their mark") { stage.count == 5 && stage.marks.count > 1 }
                let (cursor, mark) = (stage.seen[4].cursor, try #require(stage.marks.last))
                try cluster.putBack(backup)
                try cluster.start()
                try database.spend(200)
                try database.run("insert into t select generate_series(100, 109)")
                try eventually("what the database has now") { Set(Self.keys(stage.seen)).isSuperset(of: 100...109) }
                for point in [RecoveryPoint.cursor(cursor), .mark(mark)] {
                    let recovered = try stage.recovery(of: group, from: point)
                    let isTold = recovered.start == .refused(.otherDatabase)
                    #expect(isTold || Set(Self.keys(recovered.changes)).isSuperset(of: 100...109), "\(point)")
                }
            }
        }

        /// Recovery to a point in time: a new timeline, on which what the clients had before the point is still there.
        @Test func aPointInTime() throws {
            let cluster = PostgresCluster(settings: "max_wal_senders = 4")
            let database = try Self.prepared(cluster)
            let log = Notes()
            try SubscriberStage.with(database, logger: .noting(log)) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t values (0)")
                try eventually("a row") { stage.count == 1 }
                try eventually("its place is stored") {
                    try database.value(
                        "select 1 from roost.cursor where pg_snapshot_xmax(snapshot) > "
                            + "(select xid from roost.change order by xid desc limit 1)") != nil
                }
                let backup = try cluster.backup()
                for n in 1..<5 { try database.run("insert into t values (\(n))") }
                try eventually("five") { stage.count == 5 }
                let cursors = stage.seen.map(\.cursor)
                try cluster.putBack(backup)
                try cluster.recover(to: "recovery_target = 'immediate'")
                try database.spend(200)
                try database.run("insert into t select generate_series(100, 109)")
                try eventually("what the database has now") { Set(Self.keys(stage.seen)).isSuperset(of: 100...109) }
                let before = try stage.recovery(of: group, from: .cursor(cursors[0]))
                #expect(before.start == .resumed && Self.keys(before.changes) == Array(100...109))
                #expect(try stage.recovery(of: group, from: .cursor(cursors[4])).start == .refused(.otherDatabase))
            }
            #expect(
                log.all.contains { $0.contains("recovered to a point in time (timeline 2, before 1)") }, "\(log.all)")
        }

        /// A transaction that has been open since before the oldest change that is kept.
        @Test func aTransactionOlderThanTheRetention() throws {
            let database = try Self.prepared(.shared)
            let long = try database.session()
            try long.runScript("begin; select pg_current_xact_id()")
            try database.run("insert into t values (1)")
            try database.run("update roost.change set at = at - interval '2 days'")
            try SubscriberStage.with(database, oldestMark: { 0 }, pruneInterval: .milliseconds(20)) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                try eventually("the old one is gone") { stage.statistics.pruned == 1 }
                try database.run("insert into t values (2)")
                try eventually("a row, and a mark") { stage.count == 1 && !stage.marks.isEmpty }
                let (cursor, mark) = (stage.seen[0].cursor, try #require(stage.marks.last))
                try database.run("insert into t values (3)")
                try eventually("two") { stage.count == 2 }
                func check(_ expected: [Int]) throws {
                    let resumed = try stage.recovery(of: group, from: .cursor(cursor))
                    #expect(resumed.start == .resumed && Self.keys(resumed.changes) == expected)
                    let recovered = try stage.recovery(of: group, from: .mark(mark))
                    #expect(recovered.start == .resumed && Set(Self.keys(recovered.changes)).isSuperset(of: expected))
                }
                try check([3])
                // It wrote nothing that was deleted.
                try long.runScript("commit")
                try database.run("insert into t values (4)")
                try eventually("three") { stage.count == 3 }
                try check([3, 4])
                // Now something really is gone that the cursor lacks.
                try database.run("delete from roost.change where record ->> 'n' = '3'")
                #expect(try stage.recovery(of: group, from: .cursor(cursor)).start == .refused(.tooOld))
            }
        }

        /// What such a transaction wrote is as old as its statement, and yet new.
        @Test func whatALongTransactionBringsIsNotDeletedAtOnce() throws {
            let database = try Self.prepared(.shared)
            let long = try database.session()
            try long.runScript("begin; insert into t values (1); update roost.change set at = at - interval '2 days'")
            // As a hub wrote it ten minutes ago.
            try database.run(
                "insert into roost.epoch (id, node, made_at) values (99, 'test', now() - interval '11 minutes')")
            try long.runScript("commit")
            try database.run("insert into t values (2)")
            try SubscriberStage.with(database, pruneInterval: .milliseconds(20)) { stage in
                for n in 0..<10 {
                    let polls = stage.statistics.polls
                    try database.run("notify roost")
                    try eventually("poll \(n)") { stage.statistics.polls > polls + 2 }
                    usleep(10_000)
                }
                #expect(try database.value("select count(*) from roost.change") == "2")
            }
        }

        @Test(arguments: ["truncate roost.change", "delete from roost.change"])
        func anOutboxThatWasEmptied(_ statement: String) throws {
            let database = try Self.prepared(.shared)
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                for n in 0..<4 { try database.run("insert into t values (\(n))") }
                try eventually("four") { stage.count == 4 }
                let cursors = stage.seen.map(\.cursor)
                try stage.settleQuietly(database)
                let all = try #require(try stage.recovery(of: group, from: .cursor(cursors[3])).seam?.cursor)
                try database.run(statement)
                try database.run("insert into t values (4)")
                try eventually("five") { stage.count == 5 }
                #expect(try stage.recovery(of: group, from: .cursor(cursors[1])).start == .refused(.tooOld))
                let resumed = try stage.recovery(of: group, from: .cursor(all))
                #expect(
                    resumed.start == .resumed && Self.keys(resumed.changes) == [4], "who had all of it lacks nothing")
            }
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t values (5)")
                try eventually("one") { stage.count >= 1 }
                #expect(try stage.recovery(of: group, from: .restart).start == .resumed)
            }
        }
    }
}
