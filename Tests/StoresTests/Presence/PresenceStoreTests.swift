import ChangeFeed
import Foundation
import Hub
import Testing

@testable import PostgresFixtures

extension StoreTests {
    /// What the log says is in the table, whatever happens.
    @Suite struct PresenceStoreTests {
        @Test func roundTrip() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().prepared(""))
            let odd = [
                "{}", #"{"a":"\u0000\ud800","b":[1e400,-0.0]}"#, #"{"a" : 1, "a":2 , "\\":"\""}"#,
                "{\"NULL\":\"Zoë 日本 👩‍👩‍👧\u{202e}\"}",
                "{\n\t\"{\": \"},{\"\r\n}", "{\"'$1\":\"\u{1}\"}".replacing("\u{1}", with: "\u{7f}"),
            ]
            let keys = ["", "NULL", "ann", "Zoë", "日本", "\u{0}", "a\\0b\\", "\"{},'", "  ", "👩‍👩‍👧", "\u{10ffff}\n"]
            var records: [PresenceRecord] = []
            for (number, payload) in odd.enumerated() {
                for (index, key) in keys.enumerated() {
                    records.append(
                        .sample(
                            "r\(number).\(index)", in: "room:\(key)", isPrivate: index % 2 == 0, key: key,
                            hasMadeKey: index % 3 == 0, user: index % 4 == 0 ? nil : key, payload: payload,
                            appState: [nil, .active, .inactive, .background][index % 4]))
                }
            }
            for number in 0..<5000 { records.append(.sample("s\(number)", payload: #"{"n":\#(number)}"#)) }
            for record in records { stage.log.putRecord(record) }
            try stage.running { try stage.settle() }
            #expect(stage.stored() == records.sorted { $0.ref < $1.ref })
            #expect(stage.writer.statistics.rows == records.count)
            #expect(stage.writer.statistics.batches == 3)
            #expect(stage.restored(node: "b").presences.isEmpty)
        }

        /// Payloads may be large: a statement stays far below what Postgres takes.
        @Test func largePayloads() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().prepared(""))
            let payload = #"{"x":"\#(String(repeating: "x", count: 500_000))"}"#
            for number in 0..<5 { stage.log.putRecord(.sample("r\(number)", payload: payload)) }
            try stage.running { try stage.settle() }
            #expect(stage.stored().count == 5)
            #expect(stage.writer.statistics.batches == 2)
        }

        @Test func changesAreWrittenOnce() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().prepared(""))
            try stage.running {
                stage.log.putRecord(.sample("a"))
                stage.log.putRecord(.sample("b"))
                try stage.settle()
                stage.log.putRecord(.sample("b", appState: .background))
                stage.log.putRecord(.sample("c"))
                stage.log.remove("a")
                try stage.settle()
                #expect(stage.stored() == [.sample("b", appState: .background), .sample("c")])
                // Come and gone between two looks: the table is not asked about what it never had more than once.
                stage.log.putRecord(.sample("d"))
                stage.log.remove("d")
                try stage.settle()
                #expect(stage.stored().map(\.ref) == ["b", "c"])
            }
        }

        /// What another process of this node left is gone once the writer has connected.
        @Test func startsOnAnEmptyPage() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared("")
            let old = PresenceStage(database)
            for ref in ["old", "kept"] { old.log.putRecord(.sample(ref)) }
            try old.running { try old.settle() }
            let other = PresenceStage(database, node: "other")
            other.log.putRecord(.sample("theirs"))
            try other.running { try other.settle() }
            let new = PresenceStage(database)
            new.log.putRecord(.sample("kept", payload: #"{"new":1}"#))
            try new.running {
                try eventually("the old one is gone") { new.stored().map(\.ref) == ["kept"] }
                try new.settle()
            }
            #expect(new.stored() == [.sample("kept", payload: #"{"new":1}"#)])
            #expect(new.restored(node: "other").presences.map(\.ref) == ["theirs"])
        }

        @Test func idleHubSendsNothing() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().withUsers())
            try stage.running {
                stage.log.putRecord(.sample("a"))
                stage.enter(Database.ann)
                try stage.settle()
                let session = try stage.database.session()
                // Every query moves query_start and state_change.
                func last() throws -> [String?] {
                    try #require(
                        try session.queryRows(
                            "select query_start, state_change, state from pg_stat_activity "
                                + "where datname = current_database() and application_name = 'roost presence'"
                        ).first)
                }
                var before: [String?] = []
                try eventually("the last query has ended") {
                    before = try last()
                    return before[2] == "idle"
                }
                let passes = stage.writer.statistics.passes
                try eventually("20 passes") { stage.writer.statistics.passes > passes + 20 }
                #expect(try last() == before)
                stage.log.putRecord(.sample("b"))
                try stage.settle()
                #expect(try last() != before)
            }
        }

        /// In a database of another encoding some texts cannot be stored; the others are.
        @Test func otherEncoding() throws {
            let cluster = PostgresCluster.shared
            try cluster.database().run(
                "create database korean encoding 'EUC_KR' template template0 lc_collate 'C' lc_ctype 'C'")
            let stage = PresenceStage(try Database(conninfo: cluster.conninfo("korean")).prepared(""))
            for number in 0..<100 { stage.log.putRecord(.sample("r\(number)", key: number % 40 == 7 ? "🐦" : "한국")) }
            try stage.running { try stage.settle() }
            #expect(stage.stored().count == 97)
            #expect(stage.writer.statistics.refusedRows == 3)
            #expect(stage.notes.all.count { $0.contains("refuses some presences") } == 1)
        }
    }
}
