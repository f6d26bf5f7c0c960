import Administration
import ChangeFeed
import Testing
import Wire

@testable import PostgresFixtures

extension FeedTests {
    @Suite struct AlterTests {
        let database: Database

        init() throws {
            database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (id int primary key, a text); create table other (id int)", watching: "t", "other")
        }

        @Test func alteredWhileWatched() throws {
            try database.withFeed { feed, collector in
                let writer = try database.session()
                try writer.runScript("insert into t values (1, 'x')")
                try writer.runScript("alter table t add column b int; insert into t values (2, 'y', 5)")
                try eventually("two rows") { collector.count == 2 }
                try writer.runScript("alter table t drop column a; insert into t values (3, 6)")
                try eventually("three rows") { collector.count == 3 }
                try writer.runScript("alter table t rename column b to c; insert into t values (4, 7)")
                try eventually("four rows") { collector.count == 4 }
                #expect(
                    collector.seen.map { $0.change.table.columns.map(\.name) } == [
                        ["id", "a"], ["id", "a", "b"], ["id", "b"], ["id", "c"],
                    ])
                #expect(collector.lines.last == #"INSERT {"id":4,"c":7}"#)
                #expect(collector.catalog.table(schema: "public", name: "t")?.columns.count == 2)
            }
        }

        /// To Unicode the names are equal, to Postgres they are not.
        @Test func renamedToAnEquivalentName() throws {
            try database.withFeed(rhythm: .nervous) { feed, collector in
                let writer = try database.session()
                let (composed, parts): (Name, Name) = ("caf\u{e9}", "cafe\u{301}")
                try writer.runScript("alter table t rename column a to \"\(composed)\"; insert into t values (1, 'x')")
                try eventually("a row") { collector.count == 1 }
                try writer.runScript("alter table t rename column \"\(composed)\" to \"\(parts)\"")
                try writer.runScript("insert into t values (2, 'y')")
                try eventually("two rows") { collector.count == 2 }
                let columns = collector.seen.map { $0.change.table.columns.map(\.name) }
                #expect(columns == [["id", composed], ["id", parts]])
                try writer.runScript("alter table t rename to \"\(composed)\"")
                try eventually("the new name") { collector.catalog.table(schema: "public", name: composed) != nil }
                try writer.runScript("alter table \"\(composed)\" rename to \"\(parts)\"")
                try eventually("the other name") { collector.catalog.table(schema: "public", name: parts) != nil }
                #expect(collector.catalog.table(schema: "public", name: composed) == nil)
            }
        }

        @Test func alteredBeforeItWasRead() throws {
            try database.withFeed(node: "late") { _, _ in }
            try database.run("insert into t values (1, 'x')")
            try database.run("alter table t add column b int; insert into t values (2, 'y', 5)")
            try database.withFeed(node: "late") { feed, collector in
                try eventually("two rows") { collector.count == 2 }
                #expect(collector.seen.map { $0.change.table.columns.count } == [2, 3])
            }
        }

        @Test func droppedWhileWatched() throws {
            try database.withFeed(rhythm: .nervous) { feed, collector in
                let writer = try database.session()
                try writer.runScript(
                    "begin; insert into t values (1, 'x'); insert into other values (1); drop table t; commit")
                try eventually("the catalog without t") {
                    collector.catalog.tables.count == 1 && collector.lines.contains(#"INSERT {"id":1}"#)
                }
                // A leftover as a hub finds it that was away while the table was dropped.
                try writer.runScript("insert into roost.change (relid, op, record) values (999999, 'I', '{}')")
                try writer.runScript("insert into other values (2)")
                try eventually("the other table's rows") { collector.lines.last == #"INSERT {"id":2}"# }
                try eventually("the leftover is counted") { feed.statistics.orphans >= 1 }
            }
        }

        @Test func watchedAndUnwatchedWhileRunning() throws {
            try database.run("create table late (id int)")
            try database.withFeed { feed, collector in
                for round in 1...3 {
                    try Watcher.watch("late", conninfo: database.conninfo)
                    try database.run("insert into late values (\(round))")
                    try eventually("row \(round)") { collector.lines.last == "INSERT {\"id\":\(round)}" }
                    try Watcher.unwatch("late", conninfo: database.conninfo)
                    try database.run("insert into late values (-1)")
                }
                try database.run("insert into other values (9)")
                try eventually("the last row") { collector.lines.last == #"INSERT {"id":9}"# }
                #expect(collector.count == 4)
            }
        }
    }
}

extension Doorbell.Rhythm {
    /// Reads the catalog so often that a test need not wait.
    static var nervous: Doorbell.Rhythm {
        var rhythm = Doorbell.Rhythm()
        rhythm.safety = .milliseconds(100)
        return rhythm
    }
}
