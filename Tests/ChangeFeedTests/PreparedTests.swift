import ChangeFeed
import Foundation
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Two-phase commit of transactions that wrote watched tables, on a server that allows it.
    @Suite struct PreparedTests {
        private static let cluster = PostgresCluster(settings: "max_prepared_transactions = 100")

        private static func database() throws -> Database {
            try cluster.migratedDatabase().prepared(
                "create table t (id int primary key, body text); create table u (id int)", watching: "t", "u")
        }

        /// A prepared transaction may not have notified, and the hub sleeps: nobody rings, and it comes all the same.
        @Test func whatEveryKindOfWriterPrepares() throws {
            let database = try Self.database()
            let collector = Collector()
            try database.withFeed(rhythm: .sleepy, collector: collector) { feed, _ in
                try database.run("insert into t values (1, 'old'), (2, 'old'), (3, 'old'); insert into u values (1)")
                try eventually("what was there") { collector.count == 4 }
                // It may sleep already, and would not fall asleep once more by itself.
                let dozes = feed.statistics.dozes
                try database.run("notify roost")
                try eventually("the hub sleeps") { feed.statistics.dozes > dozes }
                try database.run(
                    """
                    begin;
                    insert into t values (4, 'new');
                    savepoint s;
                    update t set body = 'never' where id = 1;
                    rollback to s;
                    update t set body = 'new' where id = 2;
                    delete from t where id = 3;
                    insert into t values (5, repeat('x', 3000000));
                    truncate u;
                    select realtime.send('{}', 'e', 'room', false);
                    prepare transaction 'all'
                    """)
                try database.run("insert into t values (6, 'beside')")
                try eventually("the one that was committed") { collector.count == 5 }
                #expect(collector.broadcasts.isEmpty)
                try database.run("commit prepared 'all'")
                try eventually("the prepared ones") { collector.count == 9 && collector.broadcasts.count == 1 }
                #expect(
                    collector.seen.suffix(4).map(\.change.operation.rawValue) == [
                        "INSERT", "UPDATE", "DELETE", "INSERT",
                    ])
                #expect(feed.statistics.missedRings == 0)
            }
        }

        @Test func whatIsRolledBackNeverComes() throws {
            let database = try Self.database()
            try database.withFeed(rhythm: .sleepy) { feed, collector in
                try database.run("begin; insert into t values (1, ''); prepare transaction 'back'")
                try database.run("rollback prepared 'back'")
                try database.run("insert into t values (2, '')")
                try eventually("the other") { collector.count == 1 }
                let polls = feed.statistics.polls
                try eventually("more looks") { feed.statistics.polls > polls + 2 }
                #expect(collector.lines == [#"INSERT {"id":2,"body":""}"#])
            }
        }

        /// It holds the doorbell's lock and stays among the running ones of every snapshot.
        @Test func oneThatLastsHoldsUpNobody() throws {
            let database = try Self.database()
            try database.withFeed { feed, collector in
                try database.run("begin; insert into t values (0, ''); prepare transaction 'lasting'")
                let session = try database.session()
                for n in 1...20 {
                    try session.runScript("insert into t values (\(n), '')")
                    try eventually("row \(n)") { collector.count == n }
                }
                // Then nothing happens: the hub waits for the lock, and looks now and then.
                usleep(300_000)
                let (polls, began) = (feed.statistics.polls, ContinuousClock.now)
                usleep(1_000_000)
                let looks = feed.statistics.polls - polls
                let most = Int((ContinuousClock.now - began) / .milliseconds(64)) + 2
                #expect(looks > 0 && looks <= most, "\(looks) looks, not \(most)")
                try database.run("commit prepared 'lasting'")
                try eventually("the prepared one") { collector.count == 21 }
                #expect(collector.lines.last == #"INSERT {"id":0,"body":""}"#)
            }
        }

        /// Neither a hub that is started anew nor a server that crashed forgets that they are running.
        @Test func crashesInBetween() throws {
            let database = try Self.cluster.migratedDatabase().prepared(
                "create table t (id int primary key)", watching: "t")
            let collector = Collector()
            try database.withFeed(collector: collector) { feed, _ in
                for n in 1...3 { try database.run("begin; insert into t values (\(n)); prepare transaction 'p\(n)'") }
                try database.run("insert into t values (4)")
                try eventually("what was committed") { collector.count == 1 }
                try eventually("the place is stored") {
                    try database.value(
                        "select pg_visible_in_snapshot(c.xid, snapshot) from roost.cursor, roost.change c "
                            + "where c.record ->> 'id' = '4'") == "t"
                }
            }
            // No hub is there.
            try database.run("commit prepared 'p1'")
            try database.withFeed(collector: collector) { feed, _ in
                try eventually("the first") { collector.count == 2 }
                // One backend killed makes Postgres throw out all and recover from its WAL.
                let victim = try database.session()
                withExtendedLifetime(victim) { _ = kill(victim.backendID, SIGKILL) }
                try eventually("the feed is back") { feed.statistics.connections == 2 && feed.status == .ready }
                try database.run("commit prepared 'p3'")
                try database.run("insert into t values (5)")
                try eventually("the third, and a new one", within: .seconds(30)) { collector.count >= 4 }
                try database.run("commit prepared 'p2'")
                try eventually("the second") { collector.count >= 5 }
            }
            let ids = collector.lines.compactMap { $0.firstMatch(of: /"id":(\d+)/)?.output.1 }
            #expect(ids.suffix(1) == ["2"])
            #expect(ids.sorted() == ["1", "2", "3", "4", "5"], "each once")
        }

        /// Windows and cursors whose snapshots have many running transactions.
        @Test func manyAtOnce() throws {
            let database = try Self.cluster.migratedDatabase().chat()
            let count = 80
            try SubscriberStage.with(database, recoveryWindow: .seconds(60)) { stage in
                let group = try stage.join(
                    #"{"event":"*","schema":"public","table":"messages"}"#,
                    #"{"event":"*","schema":"public","table":"marker"}"#, as: "ann")
                let session = try database.session()
                for n in 1...count {
                    try session.runScript(
                        "begin; insert into messages values (\(n), 1, 'x'); prepare transaction 'n\(n)'")
                    // Gaps between them.
                    try session.runScript("insert into messages values (\(1000 + n), 1, 'beside')")
                }
                try stage.settle(database)
                #expect(stage.shown("ann", group).count == count + 1)
                let cursor = try #require(stage.seen.last { $0.group == group }).cursor
                for n in (1...count).reversed() { try session.runScript("commit prepared 'n\(n)'") }
                try stage.settle(database)
                #expect(stage.shown("ann", group).count == 2 * count + 2)
                let recovered = try stage.recovery(of: group, from: .cursor(cursor))
                #expect(recovered.start == .resumed)
                #expect(recovered.changes.count == count + 1, "all of them, and the marker")
            }
        }
    }
}
