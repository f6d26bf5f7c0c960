import Administration
import ChangeFeed
import Foundation
import Hub
import Matching
import Postgres
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Tables that are read from the WAL, as the feed sees them: rows are put into the outbox here as a capture does.
    @Suite struct PublishedTableTests {
        let database: Database

        init() throws {
            database = try PostgresCluster.shared.migratedDatabase().chat()
            try database.run(
                """
                create table triggered (id int primary key, n int, body text);
                create table published (id int primary key, n int, body text);
                create table whole (id int primary key, n int, body text);
                alter table whole replica identity full;
                grant select on triggered, published, whole to authenticated;
                create publication roost for table published, whole with (publish_via_partition_root = true);
                """)
            try Watcher.watch("triggered", conninfo: database.conninfo)
        }

        /// A row as the WAL tells of it.
        private func store(
            _ operation: String, _ record: String?, old: String? = nil, in table: String = "published"
        ) throws {
            _ = try database.session().queryRows(
                """
                insert into roost.change (relid, op, lsn, at, record, old_record)
                values ($1::regclass, $2::"char", '0/1', '2020-01-01 00:00:00.5+00', $3::json, $4::json)
                """, [table, operation, record, old])
        }

        private func complaints(_ stage: SubscriberStage, _ group: ChangeGroupID) -> [SubscriptionComplaint] {
            if case .partly(let complaints) = stage.outcome(group) { complaints } else { [] }
        }

        /// Logical replication fires no statement triggers.
        @Test func subscribersOfATableThatIsReplicatedIntoAreTold() throws {
            let publisher = try PostgresCluster.shared.database()
            try publisher.run("create table triggered (id int primary key); create publication p for table triggered")
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(#"{"event":"*","schema":"public","table":"triggered"}"#, as: "ann")
                func isLive() -> Bool { if case .live = stage.outcome(group) { true } else { false } }
                #expect(isLive())
                try database.run(
                    """
                    create subscription copied connection '\(publisher.conninfo)' publication p
                    with (enabled = false, create_slot = false, slot_name = none, copy_data = false)
                    """)
                defer { #expect(throws: Never.self) { try database.run("drop subscription if exists copied") } }
                try eventually("a complaint, not \(String(describing: stage.outcome(group)))") {
                    complaints(stage, group).contains { $0.isError && $0.message.contains("logical replication") }
                }
                try database.run("drop subscription copied")
                try eventually("all is well again") { isLive() }
            }
        }

        /// Filters and what clients read are the same whichever way a row came, but for the end of one of which the WAL has its key alone: no
        /// filter on another column can be asked about that.
        @Test(arguments: ["", #","filter":"id=eq.1""#, #","filter":"n=gt.1""#, #","filter":"body=like.x%""#])
        func rowsReadAsByTriggers(filter: String) throws {
            func bindings(_ table: String) -> String {
                #"{"event":"*","schema":"public","table":"\#(table)"\#(filter)}"#
            }
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(#"{"event":"*","schema":"public","table":"marker"}"#, as: "marker")
                let groups = try (
                    stage.join(bindings("triggered"), as: "ann"), stage.join(bindings("published"), as: "ann")
                )
                try database.run(
                    """
                    insert into triggered values (1, 1, 'x'); update triggered set n = 2;
                    update triggered set id = 5; delete from triggered
                    """)
                try store("I", #"{"id":1,"n":1,"body":"x"}"#)
                try store("U", #"{"id":1,"n":2,"body":"x"}"#)
                try store("U", #"{"id":5,"n":2,"body":"x"}"#, old: #"{"id":1}"#)
                try store("D", nil, old: #"{"id":5}"#)
                try stage.settle(database)
                let isByKey = filter.isEmpty || filter.contains("id=")
                func shown(_ group: ChangeGroupID) throws -> [String] {
                    let timestamp = try Regex(#""commit_timestamp":"[^"]*""#)
                    return stage.shown("ann", group).filter { isByKey || !$0.contains("DELETE") }.map {
                        $0.replacing(timestamp, with: "").replacing("triggered", with: "published")
                    }
                }
                #expect(try shown(groups.0) == shown(groups.1))
                #expect(try !shown(groups.0).isEmpty)
            }
        }

        @Test func partialOldRecordsAreOfTheWholeTable() throws {
            try database.withFeed { feed, collector in
                try store("D", nil, old: #"{"id":5}"#)
                try store("D", nil, old: #"{"id":5,"n":2,"body":"x"}"#, in: "whole")
                try store("D", nil, old: #"{"id":6}"#)
                try eventually("the rows") { collector.count == 3 }
                let table = try #require(collector.catalog.table(schema: "public", name: "published"))
                #expect(collector.seen.map { $0.change.table.columns.count } == [3, 3, 3])
                // The very table, so that the catalog was not read for them.
                #expect(collector.seen.first?.change.table === table && collector.seen.last?.change.table === table)
                #expect(collector.seen.first?.change.commitTimestamp == "2020-01-01T00:00:00.500Z")
            }
        }

        @Test func theCatalogFollowsThePublication() throws {
            let session = try PostgresConnection(database.conninfo)
            func names() throws -> Set<String> { Set(try CatalogReader.tables(from: session).map(\.name.text)) }
            func faults(readsWAL: Bool) throws -> [String] {
                let rows = try CatalogReader.tableFaults(from: session, readsWAL: readsWAL)
                return (0..<rows.count).map { "\(rows.text($0, 0) ?? "") \(rows.text($0, 1) ?? "")" }.sorted()
            }
            let before = try CatalogReader.version(from: session)
            #expect(try names().isSuperset(of: ["published", "triggered", "whole"]))
            #expect(try faults(readsWAL: true).isEmpty)
            #expect(try faults(readsWAL: false) == ["public.published unread", "public.whole unread"])
            try database.run("alter publication roost drop table whole")
            #expect(try CatalogReader.version(from: session) != before)
            #expect(try !names().contains("whole"))
            try database.run("alter publication roost add table triggered")
            #expect(try faults(readsWAL: true) == ["public.triggered both"])
        }

        @Test func whatReachesNobodyIsTold() throws {
            try SubscriberStage.with(database, rhythm: .nervous) { stage in
                let group = try stage.join(#"{"event":"*","schema":"public","table":"published"}"#, as: "ann")
                #expect(complaints(stage, group).first?.message.contains("as no hub reads the WAL") ?? false)
                try database.run("alter publication roost drop table published")
                try Watcher.watch("published", conninfo: database.conninfo)
                try eventually("all is well") { if case .live = stage.outcome(group) { true } else { false } }
                try database.run("alter publication roost add table published")
                try eventually("both are told of") {
                    complaints(stage, group).contains { $0.message.contains("arrive twice") && !$0.isError }
                }
            }
        }

        /// What is read from the WAL comes later than what triggers write: who lost a right would be shown rows.
        @Test func aScopeDoesNotRestOnWhatComesLate() throws {
            try database.run(
                """
                alter publication roost add table participants;
                insert into roost.scope values ('messages', 'conversation', '{participants}')
                """)
            for name in ["insert", "update", "delete", "truncate"] {
                try database.run("drop trigger if exists roost_\(name) on participants")
            }
            let session = try PostgresConnection(database.conninfo)
            func problems() throws -> [String] {
                try DeclaredScope.readScopes(on: session).flatMap(\.problems).filter { $0.kind == .watch }.map(\.text)
            }
            #expect(try problems().first?.contains("public.participants is read from the WAL") ?? false)
            try database.run("alter publication roost add table messages")
            for name in ["insert", "update", "delete", "truncate"] {
                try database.run("drop trigger roost_\(name) on messages")
            }
            #expect(try problems().isEmpty)
        }
    }
}
