import Administration
import ChangeFeed
import Foundation
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What has changed between the loss and the recovery.
    @Suite struct RecoveryRightsTests {
        private static let messages = #"{"event":"*","schema":"public","table":"messages"}"#

        @Test func rightsOfTodayDecide() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(
                    Self.messages, #"{"event":"*","schema":"public","table":"marker"}"#, as: "ann", "bob")
                try database.run("insert into messages values (1, 1, 'first')")
                try stage.settle(database)
                let cursor = try #require(stage.shownSeen("bob", group).last?.cursor)
                try database.run("insert into messages values (2, 1, 'while he was in'), (3, 2, 'never his')")
                try stage.settle(database)
                #expect(stage.shown("bob", group).contains { $0.contains("while he was in") })
                try database.run("delete from participants where member = 'bob'")
                try database.run("insert into messages values (4, 1, 'while he was out')")
                let bob = try stage.recovery(of: group, as: "bob", from: .cursor(cursor))
                #expect(bob.start == .resumed)
                #expect(!bob.changes.contains { $0.data.contains("while") || $0.data.contains("never") })
                let ann = try stage.recovery(of: group, as: "ann", from: .cursor(cursor))
                #expect(ann.changes.filter { $0.data.contains("while") }.count == 2)
                #expect(ann.changes.allSatisfy { $0.isFor("ann") && $0.subjects != ["bob"] })
                // The policy itself, while the feed sleeps and nobody tells it.
                try database.run(
                    "drop policy of_mine on messages; insert into messages values (5, 1, 'while nobody may')")
                let none = try stage.recovery(of: group, as: "ann", from: .cursor(cursor))
                #expect(!none.changes.contains { $0.data.contains("while") })
            }
        }

        @Test func onlyWhatTheMemberAskedFor() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let one = try stage.join(
                    #"{"event":"*","schema":"public","table":"messages","filter":"conversation=eq.1"}"#, as: "ann",
                    "bob")
                let two = try stage.join(
                    #"{"event":"INSERT","schema":"public","table":"messages","filter":"conversation=eq.2"}"#, as: "ann")
                for n in 0..<10 { try database.run("insert into messages values (\(n), \(n % 2 + 1), 'x')") }
                try database.run("update messages set body = 'y'")
                let ids = [
                    try stage.recover(one, as: "ann", from: .mark(0)),
                    try stage.recover(one, as: "bob", from: .mark(0)),
                    try stage.recover(two, as: "ann", from: .mark(0)),
                    try stage.recover(two, as: "bob", from: .mark(0)),
                ]
                try eventually("all") { stage.unfinished == 0 }
                #expect(ids.map { stage.recovered($0).changes.count } == [10, 10, 5, 0])
                #expect(stage.recovered(ids[1]).changes.allSatisfy { $0.group == one && $0.subjects == ["bob"] })
            }
        }

        @Test func tablesAlteredAndDropped() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat().also(
                "create table a (id int primary key, old text, kept text); create table b (id int primary key); "
                    + "grant select on a, b to authenticated", watching: "a")
            try Watcher.watch("b", conninfo: database.conninfo)
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let group = try stage.join(#"{"event":"*","schema":"public"}"#, as: "ann")
                try database.run("insert into a values (1, 'o', 'k'); insert into b values (1)")
                try database.run("alter table a drop column old, add column fresh int default 7; drop table b")
                try database.run("insert into a values (2, 'k', 8)")
                try stage.settle(database)
                let recovered = try stage.recovery(of: group, from: .mark(0))
                // As it was written, like a live change that was read late; of a table that is gone nobody is told.
                let records = recovered.changes.map { ResumeTests.key($0.data) }
                #expect(records.prefix(2) == [#"{"id":1,"old":"o","kept":"k""#, #"{"id":2,"kept":"k","fresh":8"#])
                #expect(recovered.changes.count == 3)
            }
        }

        @Test func refusalsSayWhy() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.messages, as: "ann")
                for n in 0..<3 { try database.run("insert into messages values (\(n), 1, 'x')") }
                try eventually("three") { stage.count == 3 }
                let cursor = stage.seen[0].cursor
                let mine = try #require(FeedCursor(cursor))
                func start(_ text: String) throws -> RecoveryStart? {
                    let recovered = try stage.recovery(of: group, from: .cursor(text))
                    #expect(recovered.seam != nil)
                    if recovered.start != .resumed { #expect(recovered.changes.isEmpty) }
                    return recovered.start
                }
                #expect(try start(cursor) == .resumed)
                for text in ["", "nonsense", cursor + "!", "';drop table t;--"] {
                    #expect(try start(text) == .refused(.malformed))
                }
                let foreign = DatabaseEpoch(systemIdentifier: "1", timeline: 1)
                #expect(
                    try start(FeedCursor(epoch: foreign, seen: mine.seen, window: mine.window, id: 1).text)
                        == .refused(.otherDatabase))
                let later = Snapshot(xmax: mine.window.xmax + 1_000_000, running: [])
                #expect(
                    try start(FeedCursor(epoch: mine.epoch, seen: mine.seen, window: later, id: 1).text)
                        == .refused(.ahead))
                // A prune up to what the cursor has hurts nobody; one transaction more, and it may lack something.
                let seen = try #require(FeedCursor(stage.seen[1].cursor)).seen
                let lowest = seen.running.first ?? seen.xmax
                try database.run("update roost.meta set pruned_xid = '\(lowest - 1)'")
                #expect(try start(stage.seen[1].cursor) == .resumed)
                try database.run("update roost.meta set pruned_xid = '\(lowest)'")
                #expect(try start(stage.seen[1].cursor) == .refused(.tooOld))
            }
        }
    }
}

extension SubscriberStage {
    func shownSeen(_ subject: String, _ group: ChangeGroupID) -> [Seen] {
        seen.filter { $0.group == group && $0.isFor(subject) }
    }
}
