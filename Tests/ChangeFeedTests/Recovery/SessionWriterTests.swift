import ChangeFeed
import Foundation
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// The list of whom a hub served, from one process to the next.
    @Suite struct SessionWriterTests {
        private static let counted = """
            select count(*) from roost.session_list l join roost.cursor c on c.node = l.node and c.list_turn = l.turn
            """

        /// With a hub that was here before.
        private static func prepared() throws -> Database {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            try database.run(
                """
                insert into roost.node (name) values ('test'), ('other');
                insert into roost.cursor (node, system_identifier, snapshot, recovery)
                select name, system_identifier, pg_current_snapshot(), pg_current_snapshot()
                from pg_control_system(), roost.node
                """)
            return database
        }

        private static func records(_ count: Int) -> [SessionRegistry.Record] {
            (1...count).map {
                SessionRegistry.Record(
                    key: RecoveryKey(high: UInt64($0) &* 0x9E37_79B9_7F4A_7C15, low: UInt64($0)),
                    count: $0 % 3 == 0 ? 32 : $0 % 3)
            }
        }

        /// A writer of a registry in which these wait.
        private static func writer(
            _ database: Database, node: String = "test", of records: [SessionRegistry.Record]? = nil,
            log: Notes = Notes(), places: RecoveryPlaces = RecoveryPlaces(window: .seconds(120))
        ) -> (writer: SessionWriter, registry: SessionRegistry) {
            let registry = SessionRegistry()
            if let records { registry.restoreSessions(records) }
            let writer = SessionWriter(
                conninfo: database.conninfo, node: node, registry: registry,
                places: places, logger: .noting(log))
            return (writer, registry)
        }

        /// Who is known to a process that starts now; nil where it may be anybody.
        private static func known(_ database: Database, node: String = "test") -> [RecoveryKey: Int]? {
            let (writer, registry) = Self.writer(database, node: node)
            writer.restoreSessions()
            // Nobody has joined, so that all who are known were read.
            guard registry.isComplete(at: HubTime(monotonic: 0, unix: 0)) else { return nil }
            registry.nothingIsWritten()
            return Dictionary(registry.takeChanged(upTo: .max).map { ($0.key, $0.count) }, uniquingKeysWith: { $1 })
        }

        private static func expected(_ records: [SessionRegistry.Record]) -> [RecoveryKey: Int] {
            Dictionary(records.map { ($0.key, $0.count) }, uniquingKeysWith: { $1 })
        }

        @Test func theNextProcessKnowsWhomThisOneServed() throws {
            let database = try Self.prepared()
            #expect(Self.known(database) == nil, "nothing was written yet")
            // More than one statement takes.
            let records = Self.records(4500)
            let (writer, _) = Self.writer(database, of: records)
            writer.startRecording { $0(true) }
            writer.start()
            defer { writer.stop() }
            try eventually("the list counts") { try database.value(Self.counted) == "1" }
            #expect(Self.known(database) == Self.expected(records))
            #expect(Self.known(database, node: "other") == nil, "each hub has a list of its own")
        }

        /// Clients come to other hubs while one starts anew; of a list that does not count, these send all that anybody may lack.
        @Test func aListCountsUntilTheNextProcessHasWrittenItsOwn() throws {
            let database = try Self.prepared()
            let records = Self.records(10)
            let (first, _) = Self.writer(database, of: records)
            first.startRecording { $0(true) }
            first.start()
            try eventually("the list counts") { try database.value(Self.counted) == "1" }
            first.stop()
            try database.run(
                """
                create table ended (node text);
                create function write_down_end() returns trigger language plpgsql as
                    'begin insert into ended values (old.node); return old; end';
                create trigger ends after delete on roost.session_list for each row execute function write_down_end();
                """)
            let seen = try database.value("select seen_at from roost.session_list")
            let (second, _) = Self.writer(database)
            second.restoreSessions()
            second.startRecording { $0(true) }
            second.start()
            defer { second.stop() }
            try eventually("the next one has written its own") {
                try database.value("select seen_at from roost.session_list") != seen
            }
            #expect(try database.value(Self.counted) == "1")
            #expect(try database.value("select count(*) from ended") == "0")
            #expect(Self.known(database) == Self.expected(records))
        }

        /// Of a process that is over: who follows stands where it began, or at what is proven, and others at their own places.
        @Test func everybodyStandsWhereItStoodItself() throws {
            let database = try Self.prepared()
            try database.run(
                """
                insert into roost.session_list (node, turn, proven) values ('test', 0, '20:20:');
                insert into roost.session (node, key, sessions, follows, place)
                select 'test', ('00000000-0000-0000-0000-00000000000' || n)::uuid, 1, n < 3, p::pg_snapshot
                from (values (1, '10:10:'), (2, '30:31:30'), (3, '10:12:11'), (4, null)) rows (n, p)
                """)
            let (writer, registry) = Self.writer(database)
            writer.restoreSessions()
            registry.nothingIsWritten()
            let places = Dictionary(
                uniqueKeysWithValues: registry.takeChanged(upTo: 10).map { ($0.key.low, $0.place) })
            #expect(places[1] == .at(.restored("20:20:")))
            #expect(places[2] == .at(.restored("30:31:30")))
            #expect(places[3] == .at(.restored("10:12:11")))
            #expect(places[4] == .at(.restart))
        }

        /// What is kept of them while they are away is where they stood, in the words of Postgres.
        @Test func aPlaceIsWrittenAsASnapshot() throws {
            let database = try Self.prepared()
            let places = RecoveryPlaces(window: .seconds(120))
            let epoch = DatabaseEpoch(value: 1)
            places.withPoints {
                let (left, now) = (Snapshot(xmax: 5, running: []), Snapshot(xmax: 40, running: []))
                $0.processStarted(after: left, storedAt: now, at: now, now: .now)
                _ = $0.windowEnded(at: Snapshot(xmax: 41, running: []), in: epoch, now: .now)
            }
            let keys = Self.records(3).map(\.key)
            let records = [
                SessionRegistry.Record(key: keys[0], count: 1, place: .at(.restored("7:9:8"))),
                SessionRegistry.Record(key: keys[1], count: 1, place: .at(.restart)),
                SessionRegistry.Record(key: keys[2], count: 1, place: .at(.restored("50:50:"))),
            ]
            let (writer, _) = Self.writer(database, of: records, places: places)
            writer.startRecording { $0(true) }
            writer.start()
            defer { writer.stop() }
            try eventually("the list counts") { try database.value(Self.counted) == "1" }
            let rows = try database.session().queryRows(
                "select place::text, follows::text from roost.session order by place::text")
            // Nobody has more than the process before had handed on.
            #expect(rows == [["40:40:", "false"], ["5:5:", "false"], ["8:9:8", "false"]])
        }

        private static func text(_ key: RecoveryKey) -> String {
            String(format: "%016llx%016llx", key.high, key.low)
        }

        /// Clients that went on at other hubs: those lost by then, and of one that was alone.
        @Test func whatAnotherHubClaimsEnds() throws {
            let database = try Self.prepared()
            let keys = Self.records(3).map(\.key)
            let (writer, registry) = Self.writer(
                database,
                of: keys.enumerated().map { SessionRegistry.Record(key: $1, count: $0 == 2 ? 2 : 1, lostAt: 0) })
            registry.lookElsewhere()
            writer.startRecording { $0(true) }
            writer.start()
            defer { writer.stop() }
            try eventually("the list counts") { try database.value(Self.counted) == "1" }
            let lost = "select string_agg((lost_at is not null)::text, ' ' order by sessions) from roost.session"
            #expect(try database.value(lost) == "true true false")
            try database.run(
                """
                insert into roost.session_claim (node, key, sought_at)
                values ('test', '\(Self.text(keys[0]))', now()), ('test', '\(Self.text(keys[1]))', now() - interval '10 years'),
                    ('test', '\(Self.text(keys[2]))', now()), ('other', '\(Self.text(keys[1]))', now())
                """)
            try eventually("it ends") { try database.value("select count(*) from roost.session") == "2" }
            #expect(Self.known(database) == [keys[1]: 1, keys[2]: 2])
            #expect(try database.value("select string_agg(node, ' ') from roost.session_claim") == "other")
        }

        /// Nor is it there for anybody before its hub, which is down, has heard of that.
        @Test func whatWasClaimedWhileAHubWasDownIsNotRestored() throws {
            let database = try Self.prepared()
            try database.run(
                """
                insert into roost.session_list (node, turn) values ('test', 0);
                insert into roost.session (node, key, sessions, lost_at)
                select 'test', ('00000000-0000-0000-0000-00000000000' || n)::uuid, 1 + n / 4, l::timestamptz
                from (values (1, '2020-01-01'), (2, '2020-01-03'), (3, null), (4, '2020-01-01')) rows (n, l);
                insert into roost.session_claim (node, key, sought_at) select node, key, '2020-01-02' from roost.session
                """)
            #expect(Self.known(database).map { Set($0.keys.map(\.low)) } == [2, 3, 4])
        }

        @Test func aListForAnEarlierTurnIsNotBelieved() throws {
            let database = try Self.prepared()
            let (writer, _) = Self.writer(database, of: Self.records(3))
            writer.startRecording { $0(true) }
            writer.start()
            try eventually("the list counts") { try database.value(Self.counted) == "1" }
            writer.stop()
            #expect(Self.known(database)?.count == 3)
            try database.run("update roost.cursor set list_turn = list_turn + 1 where node = 'other'")
            #expect(Self.known(database)?.count == 3)
            try database.run("update roost.cursor set list_turn = list_turn + 1 where node = 'test'")
            #expect(Self.known(database) == nil)
        }

        @Test func aWithdrawalOfTheFeedsEndsTheListUntilItIsWhole() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database) { stage in
                let (writer, registry) = Self.writer(database, of: Self.records(3))
                writer.startRecording { stage.withdrawSessionList(whenDone: $0) }
                writer.start()
                defer { writer.stop() }
                try eventually("the list counts") { try database.value(Self.counted) == "1" }
                let other = try database.session()
                try other.runScript("begin; lock table roost.session, roost.session_list in access exclusive mode")
                // As a join does that has waited too long.
                let isDone = Notes()
                stage.withdrawSessionList {
                    registry.withdrawalEnded(successfully: $0)
                    isDone.add("\($0)")
                }
                try eventually("an answer") { isDone.all == ["true"] }
                try other.runScript("rollback")
                try eventually("the list counts again") {
                    try database.value(Self.counted) == "1"
                        && database.value("select list_turn from roost.cursor where node = 'test'") == "1"
                }
                #expect(Self.known(database)?.count == 3)
            }
        }

        @Test func whatWasInTheWayIsWaitedFor() throws {
            let database = try Self.prepared()
            let log = Notes()
            let (writer, registry) = Self.writer(database, of: Self.records(3), log: log)
            let other = try database.session()
            try other.runScript("begin; lock table roost.session in access exclusive mode")
            writer.startRecording { $0(true) }
            writer.start()
            defer { writer.stop() }
            try eventually("a warning") {
                log.all.contains { $0.contains("cannot be recorded in the database for now") }
            }
            #expect(registry.hasChanged)
            try other.runScript("rollback")
            try eventually("the list counts") { try database.value(Self.counted) == "1" }
            #expect(Self.known(database) == Self.expected(Self.records(3)))
            try eventually("a word about it") { log.all.contains { $0.contains("are recorded in the database again") } }
        }

        /// A hub that has no cursor yet has nothing that a claim could be for.
        @Test func withoutACursorNoListCounts() throws {
            let database = try Self.prepared()
            try database.run("delete from roost.cursor")
            let (writer, registry) = Self.writer(database, of: Self.records(3))
            writer.startRecording { $0(true) }
            writer.start()
            defer { writer.stop() }
            try eventually("they are written") { try database.value("select count(*) from roost.session") == "3" }
            try eventually("nothing waits") { !registry.hasChanged }
            #expect(Self.known(database) == nil)
        }

        /// What clients cost that name themselves in a hundred thousand ways.
        @Test(.enabled(if: isSlow)) func aHundredThousand() throws {
            let database = try Self.prepared()
            let records = Self.records(100_000)
            let (writer, _) = Self.writer(database, of: records)
            writer.startRecording { $0(true) }
            let start = ContinuousClock.now
            writer.start()
            defer { writer.stop() }
            try eventually("the list counts", within: .seconds(60)) { try database.value(Self.counted) == "1" }
            let written = ContinuousClock.now - start
            let size = try database.value("select pg_size_pretty(pg_total_relation_size('roost.session'))") ?? ""
            let again = ContinuousClock.now
            #expect(Self.known(database)?.count == records.count)
            print("100,000 sessions: written in \(written), \(size), read in \(ContinuousClock.now - again)")
        }
    }
}
