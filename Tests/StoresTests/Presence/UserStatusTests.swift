import ChangeFeed
import Foundation
import Hub
import Stores
import Testing

@testable import PostgresFixtures

extension StoreTests {
    /// Who comes online and goes is in the application's own table.
    @Suite struct UserStatusTests {
        @Test func sampleChat() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().withUsers())
            // The application's own word.
            try stage.database.run("update users set status = 'away' where id = '\(Database.cat)'")
            try stage.running {
                stage.enter(Database.cat, at: 9)
                stage.enter(Database.ann, at: 10)
                stage.enter(Database.bob.uppercased(), at: 11)
                // Nobody of the chat's: passed over.
                for id in ["service", "", "00000000-0000-4000-8000-00000000000", "'; drop table users", "\u{0}"] {
                    stage.enter(id)
                }
                try stage.settle()
                #expect(try stage.database.statuses() == ["online 10", "online 11", "away"])
                stage.leave(Database.ann, at: 20)
                try stage.settle()
                #expect(try stage.database.statuses() == ["offline 20", "online 11", "away"])
                // Never backwards.
                stage.enter(Database.ann, at: 15)
                try stage.settle()
                #expect(try stage.database.statuses()[0] == "online 20")
            }
            #expect(stage.notes.all.isEmpty)
            #expect(stage.writer.statistics.refusedTransitions == 1)
        }

        /// A word of the application's own stays until the user goes.
        @Test func away() throws {
            let database = try PostgresCluster.shared.migratedDatabase().withUsers()
            // One that would overwrite it.
            let blunt =
                "update users set status = case when ($2::boolean[])[1] then 'online' else 'offline' end "
                + "where id::text = any ($1::text[]) and cardinality($3::timestamptz[]) > 0"
            for statement in [PresenceWriter.statementOfSampleChat, blunt] {
                let before = PresenceStage(database, statement: statement)
                before.enter(Database.ann)
                try before.running { try before.settle() }
                try database.run("update users set status = 'away' where id = '\(Database.ann)'")
                let stage = PresenceStage(database, statement: statement)
                // Gone and come between two looks: for the application the user never went.
                stage.enter(Database.ann)
                stage.leave(Database.ann)
                stage.enter(Database.ann)
                try stage.running {
                    try stage.settle()
                    #expect(try database.statuses()[0].hasPrefix("away"))
                    stage.leave(Database.ann)
                    try stage.settle()
                    #expect(try database.statuses()[0].hasPrefix("offline"))
                    stage.enter(Database.ann)
                    try stage.settle()
                    #expect(try database.statuses()[0].hasPrefix("online"))
                    stage.leave(Database.ann)
                    try stage.settle()
                }
            }
        }

        /// Nothing happened for long, and then the hub stopped: that is when those who stay away were seen last.
        @Test func aStopIsASignOfLife() throws {
            let database = try PostgresCluster.shared.migratedDatabase().withUsers()
            let stage = PresenceStage(database, heartbeat: .seconds(3600))
            let before = Int64(Date().timeIntervalSince1970 * 1000) - 1000
            try stage.running {
                stage.enter(Database.ann, at: 10)
                try stage.settle()
            }
            #expect(stage.restored().users.allSatisfy { $0.seen > before })
            #expect(stage.restored().users.count == 1)
        }

        /// The users that were online when the hub was killed come back from the table, with the last sign of life.
        @Test func restored() throws {
            let database = try PostgresCluster.shared.migratedDatabase().withUsers()
            let stage = PresenceStage(database)
            try stage.running {
                stage.enter(Database.ann, at: 10)
                try stage.settle()
                stage.enter(Database.bob, at: 20)
                stage.enter(Database.cat, at: 20)
                stage.leave(Database.cat, at: 21)
                try stage.settle()
            }
            var restored = stage.restored()
            #expect(restored.users.map(\.user.text).sorted() == [Database.ann, Database.bob])
            #expect(restored.users.map(\.seen) == [20_000, 20_000], "when bob came, ann was there")
            try database.run(
                """
                insert into roost.node (name) values ('a');
                insert into roost.cursor (node, system_identifier, snapshot, stored_at)
                values ('a', 1, '1:1:', to_timestamp(30.25));
                """)
            restored = stage.restored()
            #expect(restored.users.map(\.seen) == [30_250, 30_250])
            #expect(stage.restored(node: "b").users.isEmpty)

            let next = PresenceStage(database)
            next.users.restoreUsers(next.writer.restore().users, until: 100_000)
            try next.running {
                next.enter(Database.bob, at: 60)
                try next.settle()
                #expect(try database.statuses() == ["online 10", "online 20", "offline 21"], "nobody flaps")
                next.users.advanceTime(to: PresenceStage.time(200))
                try next.settle()
                #expect(try database.statuses() == ["offline 30", "online 20", "offline 21"])
            }
            #expect(next.left.all.isEmpty)
        }

        /// The database could not be read at start-up: whom it calls online is found when it can.
        @Test func staleUsersAreReported() throws {
            let database = try PostgresCluster.shared.migratedDatabase().withUsers()
            let old = PresenceStage(database)
            for user in [Database.ann, Database.bob, "\u{1f426}"] { old.enter(user) }
            try old.running { try old.settle() }
            let new = PresenceStage(database)
            new.enter(Database.bob, at: 50)
            try new.running {
                try eventually("two are found") { new.left.all.count >= 2 }
                let passes = new.writer.statistics.passes
                try eventually("more passes") { new.writer.statistics.passes > passes + 3 }
            }
            #expect(new.left.all.sorted() == [Database.ann, "\u{1f426}"], "and once")
        }

        @Test func nothingConfigured() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().withUsers(), statement: nil)
            stage.enter(Database.ann)
            try stage.running { try stage.settle() }
            #expect(!stage.users.hasTransitions, "they do not pile up")
            #expect(try stage.database.onlineUsers().isEmpty)
            #expect(try stage.database.statuses() == ["offline", "offline", "offline"])
        }

        /// 2,500 users are three transactions.
        @Test func batches() throws {
            let database = try PostgresCluster.shared.migratedDatabase().withUsers()
            try database.run(
                "insert into users (id) select md5(n::text)::uuid from generate_series(1, 2500) n")
            let ids = try database.session().queryRows("select id from users where md5('1')::uuid <= id or true")
                .compactMap {
                    $0[0]
                }
            let stage = PresenceStage(database)
            for id in ids { stage.enter(id) }
            try stage.running { try stage.settle() }
            #expect(stage.writer.statistics.transactions == 3)
            #expect(stage.writer.statistics.transitions == 2503)
            #expect(Set(try database.statuses()) == ["online 1"])
        }
    }
}
