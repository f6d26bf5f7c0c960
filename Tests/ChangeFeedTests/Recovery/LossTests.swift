import ChangeFeed
import Foundation
import Hub
import Postgres
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What goes from the outbox before the hub has read it.
    @Suite struct LossTests {
        private static let binding = #"{"event":"*","schema":"public","table":"t"}"#

        private static func prepared() throws -> Database {
            try PostgresCluster.shared.migratedDatabase().chat().also(
                "create table t (n int primary key); grant select on t to authenticated", watching: "t")
        }

        /// In one transaction, so that nobody can have read the row.
        @Test(arguments: [
            "truncate roost.change", "delete from roost.change",
            "set local session_replication_role = replica; truncate roost.change",
            "set local session_replication_role = replica; truncate roost.change restart identity",
            "alter table roost.change disable trigger all; truncate roost.change; alter table roost.change enable trigger all",
        ]) func whoeverIsConnectedIsTold(_ emptied: String) throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                // With the second one the hub has looked at what was there with the first.
                for n in 0..<2 {
                    try database.run("insert into t values (\(n))")
                    try eventually("it") { stage.count == n + 1 }
                }
                let cursor = try #require(stage.seen.last?.cursor)
                try database.run("begin; insert into t values (2); \(emptied); commit")
                try eventually("a gap") { !stage.gapsAt.isEmpty }
                try database.run("insert into t values (3)")
                try eventually("three") { stage.count == 3 }
                try eventually("a mark behind it") { stage.marks.count > 1 }
                #expect(stage.gapsAt == [2], "once, in its place")
                #expect(try stage.recovery(of: group, from: .cursor(cursor)).start == .refused(.tooOld))
            }
        }

        @Test(arguments: [
            "truncate roost.change", "delete from roost.change", "vacuum full roost.change",
            "cluster roost.change using change_pkey", "select 1",
        ]) func nobodyIsToldWhereAllWasRead(_ statement: String) throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.binding, as: "ann")
                for n in 0..<4 { try database.run("insert into t values (\(n))") }
                try eventually("four") { stage.count == 4 }
                // One that has written elsewhere, and one that has changed a row before and after.
                let long = try database.session()
                try long.runScript("create table other (n int); begin; insert into other values (1)")
                for n in 4..<8 { try database.run("insert into t values (\(n))") }
                try eventually("eight") { stage.count == 8 }
                try database.run(statement)
                try database.run("insert into t values (8)")
                try eventually("nine") { stage.count == 9 }
                try long.runScript("insert into t values (9); commit")
                try eventually("ten") { stage.count == 10 }
                try database.run("insert into t values (10)")
                try eventually("eleven") { stage.count == 11 }
                #expect(stage.gapsAt.isEmpty)
            }
        }

        /// To everybody who is connected that would be a reload for nothing.
        @Test func anOutboxThatIsWrittenAnewWasNotEmptied() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.binding, as: "ann")
                var n = 0
                // Windows that begin half a second after a look bring another one.
                func read(for duration: Duration) throws {
                    let end = ContinuousClock.now + duration
                    while .now < end {
                        n += 1
                        try database.run("insert into t values (\(n))")
                        try eventually("row \(n)") { stage.count == n }
                    }
                }
                try database.run("vacuum full roost.change")
                try read(for: .milliseconds(1200))
                #expect(stage.gapsAt.isEmpty)
            }
        }

        /// The feed was away while another hub deleted what was old by then.
        @Test func whatWasPrunedWhileTheFeedWasAwayIsToldToo() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t values (1)")
                try eventually("one") { stage.count == 1 }
                try database.run(
                    """
                    begin;
                    select pg_terminate_backend(pid) from pg_stat_activity
                    where datname = current_database() and pid <> pg_backend_pid();
                    insert into t values (2);
                    delete from roost.change;
                    commit
                    """)
                try eventually("a gap") { stage.gapsAt == [1] }
            }
        }

        /// Who has no cursor is told what came behind the last change that is gone, and nothing from before: loaded is a newer version by
        /// then. Who has a cursor is told what comes from now on.
        @Test func ofWhatIsLostInPartIsToldWhatCameBehindIt() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t values (0)")
                try eventually("one, and a mark") { stage.count == 1 && !stage.marks.isEmpty }
                let (mark, cursor) = (try #require(stage.marks.first), try #require(stage.seen.last?.cursor))
                for n in 1..<5 { try database.run("insert into t values (\(n))") }
                try eventually("five") { stage.count == 5 }
                try database.run("delete from roost.change where record ->> 'n' in ('1', '3')")
                try stage.settleQuietly(database)
                let points: [(RecoveryPoint, String)] = [
                    (.mark(mark), "4"), (.earliest([.mark(mark), .cursor(cursor)]), "4"), (.cursor(cursor), ""),
                    (.mark(0), "4"), (.cursor("x"), ""),
                ]
                for (point, rest) in points {
                    let told = try stage.recovery(of: group, from: point)
                    #expect(told.start == .refused(point == .cursor("x") ? .malformed : .tooOld))
                    let keys = told.changes.map { ResumeTests.key($0.data).filter(\.isNumber) }
                    #expect(told.faults == 0 && keys.joined() == rest, "\(point) \(keys)")
                }
            }
        }

        /// Whoever recovers over it is told, by slice or by scan, with a filter or without; behind all that was written
        /// before it, as an application that loads its data at the word would keep an older version that came later.
        @Test func whatCouldNotBeRecordedIsToldToWhoRecoversOverIt() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                let choosy = try stage.join(
                    #"{"event":"*","schema":"public","table":"t","filter":"n=eq.2"}"#, as: "ann")
                let other = try stage.join(#"{"event":"*","schema":"public","table":"marker"}"#, as: "ann")
                try database.run("insert into t values (0)")
                try eventually("one, and a mark") { stage.count == 1 && !stage.marks.isEmpty }
                let (mark, cursor) = (try #require(stage.marks.first), try #require(stage.seen.last?.cursor))
                try database.run(
                    """
                    insert into t values (1);
                    insert into roost.change (relid, op) select 't'::regclass, 'L' from generate_series(1, 3);
                    insert into t values (2)
                    """)
                try stage.settle(database)
                try eventually("a word, live") { stage.losses.count == 2 }
                #expect(Set(stage.losses.map(\.group)) == [group, choosy])
                for point in [RecoveryPoint.mark(mark), .cursor(cursor), .earliest([.mark(mark), .cursor(cursor)])] {
                    let told = try stage.recovery(of: group, from: point)
                    #expect(told.start == .resumed && told.losses == 1 && told.faults == 0, "\(point)")
                    #expect(told.changes.suffix(2).map { ResumeTests.key($0.data).filter(\.isNumber) } == ["1", "2"])
                    #expect(told.lossesAt == [told.changes.count], "\(point)")
                    // Who breaks off before the word hears it after all.
                    let broken = try #require(told.changes.last?.cursor)
                    #expect(try stage.recovery(of: group, from: .cursor(broken)).losses == 1, "\(point)")
                    let few = try stage.recovery(of: choosy, from: point)
                    #expect(few.losses == 1 && few.changes.count == 1 && few.faults == 0, "\(point)")
                    #expect(try stage.recovery(of: other, from: point).losses == 0)
                }
                let last = try #require(stage.seen.last { $0.group == group }?.cursor)
                #expect(try stage.recovery(of: group, from: .cursor(last)).losses == 0, "it lies behind that")
                try database.run("insert into t select generate_series(10, 5000)")
                try stage.settle(database)
                let much = try stage.recovery(of: group, from: .cursor(cursor))
                #expect(much.changes.count == 2 + 4991)
                // Once for each part that is read.
                #expect((1...3).contains(much.losses) && much.lossesAt.allSatisfy { $0 > 0 })
                #expect(stage.losses.count == 2)
            }
        }

        /// What a role may not read it is told nothing of, not even the name.
        @Test func nobodyElseIsToldOfATable() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database) { stage in
                let all = #"{"event":"*","schema":"public"}"#
                let reader = try stage.join(all, as: "ann")
                let stranger = try stage.join(all, role: "anon", as: "eve")
                try database.run("insert into roost.change (relid, op) values ('t'::regclass, 'L')")
                try eventually("a word") { !stage.losses.isEmpty }
                try stage.settle(database)
                #expect(stage.losses.map(\.group) == [reader], "and not \(stranger)")
            }
        }

        @Test func anOldSnapshotTruncatesNothing() throws {
            let database = try Self.prepared()
            for level in ["repeatable read", "serializable"] {
                let session = try database.session()
                try session.runScript("begin isolation level \(level); select 1")
                try database.run("insert into t values ((select count(*) from t))")
                #expect(throws: PostgresError.self) { try session.runScript("truncate roost.change") }
            }
            #expect(try database.value("select count(*) from roost.change") == "2")
        }
    }
}
