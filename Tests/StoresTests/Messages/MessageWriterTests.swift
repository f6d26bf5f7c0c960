import Hub
import Stores
import Synchronization
import Testing
import Wire

@testable import PostgresFixtures

/// Broadcasts that become rows of `realtime.messages`, and what bounds those that wait.
extension StoreTests {
    @Suite struct MessageWriterTests {
        private let notes = Notes()

        /// What became of messages, in the order in which that was known.
        private final class Answers: Sendable {
            private let content = Mutex<[String?]>([])
            var all: [String?] { content.withLock { $0 } }
            func append(_ id: String?) { content.withLock { $0.append(id) } }
        }

        private func message(_ payload: String = "{}", by user: Name? = nil, ttl: Int? = nil) throws -> PersistedMessage
        {
            let broadcast = UserBroadcast(event: "e", encoding: .json, payload: Array(payload.utf8)[...], metadata: nil)
            let key = ChannelKey(topic: "realtime:a", isPrivate: true)
            return try #require(PersistedMessage(broadcast, in: key, PersistRequest(ttl: ttl), by: user))
        }

        private func running(_ conninfo: String, _ body: (MessageWriter, Answers) throws -> Void) rethrows {
            let writer = MessageWriter(conninfo: conninfo, logger: .noting(notes))
            writer.start()
            defer { writer.stop() }
            try body(writer, Answers())
        }

        @Test func manyAreWrittenByFewStatements() throws {
            let database = try PostgresCluster.shared.migratedDatabase()
            try running(database.conninfo) { writer, answers in
                for number in 0..<2000 {
                    writer.storeMessage(try message("{\"n\":\(number)}", by: Name("user\(number % 20)"))) {
                        answers.append($0)
                    }
                }
                try eventually("all are answered") { answers.all.count == 2000 }
                let ids = Set(answers.all.compactMap { $0 })
                #expect(ids.count == 2000)
                let rows = try database.value("select string_agg(id::text, ' ') from realtime.messages") ?? ""
                #expect(Set(rows.split(separator: " ").map(String.init)) == ids)
                #expect(
                    try database.value("select count(*) from realtime.messages where skip_broadcast and private")
                        == "2000")
                try eventually("the figures") { writer.statistics.stored == 2000 }
                #expect(writer.statistics.batches < 500)
            }
            #expect(try database.value("select count(*) from roost.change") == "0", "nothing is broadcast again")
        }

        @Test func whatExpiresHasATime() throws {
            let database = try PostgresCluster.shared.migratedDatabase()
            try running(database.conninfo) { writer, answers in
                writer.storeMessage(try message(ttl: 3600)) { answers.append($0) }
                writer.storeMessage(try message()) { answers.append($0) }
                try eventually("both are answered") { answers.all.count == 2 }
                let minutes = "round(extract(epoch from expires_at - inserted_at) / 60)::int::text"
                #expect(
                    try database.value(
                        "select string_agg(coalesce(\(minutes), 'never'), ' ' order by expires_at) from realtime.messages"
                    )
                        == "60 never")
            }
        }

        @Test func aTableThatIsLockedIsWaitedFor() throws {
            let database = try PostgresCluster.shared.migratedDatabase()
            try running(database.conninfo) { writer, answers in
                let locker = try database.session()
                try locker.runScript("begin; lock table realtime.messages")
                writer.storeMessage(try message()) { answers.append($0) }
                try eventually("it waits for the lock") {
                    try database.value(
                        "select count(*) from pg_stat_activity where application_name = 'roost messages' and wait_event_type = 'Lock'"
                    )
                        == "1"
                }
                try locker.runScript("commit")
                try eventually("it is answered") { answers.all.count == 1 }
                #expect(answers.all[0] != nil)
            }
        }

        /// Supabase's own tables of before have not what a row takes that has been broadcast already.
        @Test func aTableWithoutTheColumnGetsNoRows() throws {
            let database = try PostgresCluster.shared.migratedDatabase()
            try database.run("alter table realtime.messages drop column skip_broadcast")
            try running(database.conninfo) { writer, answers in
                writer.storeMessage(try message()) { answers.append($0) }
                try eventually("it is answered") { answers.all.count == 1 }
                #expect(answers.all == [nil])
            }
            #expect(notes.all.contains { $0.contains("no column skip_broadcast") }, "\(notes.all)")
            #expect(try database.value("select count(*) from realtime.messages") == "0")
        }

        /// Before its thread begins, all that is taken waits.
        @Test func oneUserLeavesRoomForOthers() throws {
            let writer = MessageWriter(conninfo: "", logger: .noting(notes))
            let refused = Answers()
            func store(_ user: Name?, _ payload: String = "{}") throws -> Bool {
                let before = refused.all.count
                writer.storeMessage(try message(payload, by: user)) { refused.append($0) }
                return refused.all.count == before
            }
            var taken = 0
            while try store("eve") { taken += 1 }
            #expect(taken == 1000, "a tenth of all")
            #expect(try store("ann"))
            let large = "\"" + String(repeating: "x", count: 3_000_000) + "\""
            #expect(try store("bob", large) && store("bob", large))
            #expect(try !store("bob", large), "a tenth of the bytes")
            #expect(refused.all == [nil, nil])
            #expect(writer.statistics.waiting == 1003)
        }
    }
}
