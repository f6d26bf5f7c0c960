import ChangeFeed
import Foundation
import Hub
import Synchronization
import Testing

@testable import PostgresFixtures

extension StoreTests {
    /// What goes wrong with the application's statement.
    @Suite struct UserFaultTests {
        private static let strict = """
            update users u set status = case when s.online then 'online' else 'offline' end, last_seen = s.at
            from unnest($1::text[], $2::boolean[], $3::timestamptz[]) s (id, online, at) where u.id = s.id::uuid
            """

        @Test func badUsersAreSetAside() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().withUsers(), statement: Self.strict)
            try stage.database.run("insert into users (id) select md5(n::text)::uuid from generate_series(1, 997) n")
            let ids = try stage.database.session().queryRows("select id from users").compactMap { $0[0] }
            for (number, id) in ids.enumerated() {
                stage.enter(id)
                if number % 300 == 50 { stage.enter("nobody \(number)") }
            }
            // Longer than an index takes.
            stage.enter(String((0..<9000).compactMap { _ in "0123456789abcdefghijklmnopqrstuvwxyz".randomElement() }))
            try stage.running {
                try stage.settle()
                #expect(Set(try stage.database.statuses()) == ["online 1"])
                #expect(stage.writer.statistics.transitions == 1000)
                #expect(stage.writer.statistics.refusedTransitions == 5)
                #expect(try stage.database.onlineUsers().count == 1000, "what was not told is not noted")
            }
            let said = stage.notes.all
            #expect(said.count == 2)
            #expect(said.count { $0.contains(#"users.statement fails for the user "nobody"#) } == 1)
            #expect(said.count { $0.contains("roost.online_user does not take the user") && $0.count < 500 } == 1)
        }

        /// Also where only the COMMIT fails.
        @Test func deferredConstraint() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().withUsers())
            try stage.database.run(
                """
                create function no_bob() returns trigger language plpgsql as $$
                begin
                    if new.id = '\(Database.bob)' then raise exception 'not bob'; end if;
                    return null;
                end $$;
                create constraint trigger no_bob after update on users deferrable initially deferred
                    for each row execute function no_bob();
                """)
            for user in [Database.ann, Database.bob, Database.cat] { stage.enter(user) }
            try stage.running { try stage.settle() }
            #expect(try stage.database.statuses() == ["online 1", "offline", "online 1"])
            #expect(stage.notes.all.count == 1)
        }

        @Test func brokenStatementWaitsForItsTable() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().withUsers())
            try stage.database.run("alter table users rename to later")
            stage.log.putRecord(.sample("a"))
            for user in [Database.ann, Database.bob] { stage.enter(user) }
            try stage.running {
                try eventually("several attempts") { stage.writer.statistics.failures >= 4 }
                #expect(stage.stored().count == 1, "presences are written all the same")
                #expect(stage.notes.all.count == 1)
                #expect(stage.notes.all.first?.contains("users.statement fails") ?? false)
                #expect(stage.notes.all.first?.contains("public.users") ?? false)
                // The newest word counts.
                stage.leave(Database.bob, at: 9)
                try stage.database.run("alter table later rename to users")
                try stage.settle()
            }
            #expect(try stage.database.statuses() == ["online 1", "offline 9", "offline"])
            #expect(stage.writer.statistics.refusedTransitions == 0)
        }

        /// Nobody is left out because of rights.
        @Test func lackOfRights() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().withUsers())
            try stage.database.run("alter table roost.online_user rename to elsewhere")
            for user in [Database.ann, Database.bob] { stage.enter(user) }
            try stage.running {
                try eventually("several attempts") { stage.writer.statistics.failures >= 4 }
                try stage.database.run("alter table roost.elsewhere rename to online_user")
                try stage.settle()
            }
            #expect(try stage.database.statuses() == ["online 1", "online 1", "offline"])
            #expect(stage.writer.statistics.refusedTransitions == 0)
            #expect(stage.notes.all.count == 1)
            #expect(stage.notes.all.first?.contains("roost.online_user cannot be written") ?? false)
        }

        @Test func lockedTable() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().withUsers())
            try stage.running {
                let locker = try stage.database.session()
                try locker.runScript("begin; lock table users in access exclusive mode")
                stage.enter(Database.ann)
                try eventually("a time-out") { stage.writer.statistics.failures >= 1 }
                stage.log.putRecord(.sample("a"))
                try locker.runScript("rollback")
                try stage.settle()
            }
            #expect(try stage.database.statuses()[0] == "online 1")
            #expect(stage.notes.all.count == 1)
            #expect(stage.notes.all.first?.contains("lock") ?? false)
        }

        @Test("a user whose row is locked keeps nobody else's status, and has his own when the lock is gone")
        func lockedRow() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().withUsers())
            try stage.database.run("insert into users (id) select md5(n::text)::uuid from generate_series(1, 300) n")
            let ids = try stage.database.session().queryRows("select id from users").compactMap { $0[0] }
            try stage.running {
                let locker = try stage.database.session()
                try locker.runScript("begin; select from users where id = '\(Database.ann)' for update")
                for id in ids { stage.enter(id) }
                try eventually("the others", within: .seconds(30)) {
                    try stage.database.statuses().count { $0 == "online 1" } == ids.count - 1
                }
                // Whoever comes later does not wait for him, either.
                stage.leave(Database.bob, at: 3)
                try eventually("another") { try stage.database.statuses()[1] == "offline 3" }
                #expect(stage.writer.statistics.oldestWaiting != nil, "somebody waits")
                try locker.runScript("rollback")
                try stage.settle()
            }
            #expect(try stage.database.statuses()[0] == "online 1")
            #expect(stage.writer.statistics.refusedTransitions == 0)
            #expect(stage.notes.all.contains { $0.contains(Database.ann) && $0.contains("for them alone") })
        }

        @Test(
            "a user for whom the statement ends the session, or fails as if asking again helped, keeps nobody else's status",
            arguments: ["", "40001", "55000", "58P01"])
        func trigger(state: String) throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().withUsers())
            let harm =
                state.isEmpty
                ? "perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(60)"
                : "raise exception 'not now' using errcode = '\(state)'"
            try stage.database.run(
                """
                insert into users (id) select md5(n::text)::uuid from generate_series(1, 100) n;
                create function harm() returns trigger language plpgsql as $$ begin \(harm); return new; end $$;
                create trigger harm before update on users for each row when (new.id = '\(Database.bob)')
                    execute function harm()
                """)
            let ids = try stage.database.session().queryRows("select id from users").compactMap { $0[0] }
            stage.log.putRecord(.sample("a"))
            for id in ids { stage.enter(id) }
            try stage.running {
                try eventually("the others", within: .seconds(30)) {
                    try stage.database.statuses().count { $0 == "online 1" } == ids.count - 1
                }
                #expect(stage.stored().count == 1)
                stage.leave(Database.ann, at: 3)
                try eventually("another") { try stage.database.statuses()[0] == "offline 3" }
                // His own word is kept until it can be written.
                try stage.database.run("drop trigger harm on users")
                try stage.settle()
            }
            #expect(try stage.database.statuses()[1] == "online 1")
            #expect(stage.writer.statistics.refusedTransitions == 0)
        }

        /// Connections are cut while users come and go on two hubs: in the end the table says what is.
        @Test func twoHubsUnderFire() throws {
            let database = try PostgresCluster.shared.migratedDatabase().withUsers()
            try database.run("insert into users (id) select md5(n::text)::uuid from generate_series(1, 37) n")
            let ids = try database.session().queryRows("select id from users order by id").compactMap { $0[0] }
            let stages = ["a", "b"].map { PresenceStage(database, node: $0) }
            for stage in stages { stage.writer.start() }
            defer { for stage in stages { stage.writer.stop() } }
            let finished = Mutex(0)
            let online = Mutex([Set<String>](repeating: [], count: 2))
            try concurrently(3) { index in
                guard index < 2 else {
                    let session = try database.tester.session()
                    while finished.withLock({ $0 }) < 2 {
                        _ = try session.queryRows(
                            "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
                                + "and application_name = 'roost presence' and random() < 0.3")
                        usleep(20_000)
                    }
                    return
                }
                var here: Set<String> = []
                for second in 1...3000 {
                    guard let id = ids.randomElement() else { break }
                    if here.remove(id) != nil {
                        stages[index].leave(id, at: Int64(second))
                    } else {
                        here.insert(id)
                        stages[index].enter(id, at: Int64(second))
                    }
                    if second % 10 == 0 { usleep(2000) }
                }
                online.withLock { $0[index] = here }
                finished.withLock { $0 += 1 }
            }
            for stage in stages { try stage.settle() }
            let both = online.withLock { $0[0].union($0[1]) }
            let statuses = try database.session().queryRows("select id, status from users order by id")
            #expect(statuses.map { $0[1] } == ids.map { both.contains($0) ? "online" : "offline" })
            #expect(try database.onlineUsers().count == online.withLock { $0[0].count + $0[1].count })
            #expect(stages.map(\.writer.statistics.refusedTransitions) == [0, 0])
        }

        @Test func onlineElsewhere() throws {
            let database = try PostgresCluster.shared.migratedDatabase().withUsers()
            let (one, two) = (PresenceStage(database, node: "a"), PresenceStage(database, node: "b"))
            try one.running {
                try two.running {
                    one.enter(Database.ann, at: 1)
                    two.enter(Database.ann, at: 2)
                    try one.settle()
                    try two.settle()
                    one.leave(Database.ann, at: 3)
                    try one.settle()
                    #expect(try database.statuses()[0].hasPrefix("online"))
                    two.leave(Database.ann, at: 4)
                    try two.settle()
                    #expect(try database.statuses()[0] == "offline 4")
                }
            }
        }
    }
}
