import Administration
import ChangeFeed
import Foundation
import Hub
import Synchronization
import Testing
import Wire

@testable import PostgresFixtures

extension StoreTests {
    /// Presence is right again after whatever happens to Postgres.
    @Suite struct PresenceFaultTests {
        /// Changes presences until told to stop, and keeps what is there.
        private static func churn(_ stage: PresenceStage, _ stop: borrowing Mutex<Bool>) {
            var round = 0
            while !stop.withLock({ $0 }) {
                let ref = "r\(Int.random(in: 0..<300))"
                if Bool.random() {
                    stage.log.putRecord(.sample(ref, payload: #"{"round":\#(round)}"#))
                } else {
                    stage.log.remove(Name(ref))
                }
                round += 1
                if round % 20 == 0 { usleep(500) }
            }
        }

        /// What the log holds, found by its own means.
        private static func truth(_ log: PresenceLog) -> [PresenceRecord] {
            log.takeFromTheStart()
            return log.takeChanges().compactMap(\.record).sorted { $0.ref < $1.ref }
        }

        @Test func terminatedWhileWriting() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().withUsers())
            let stop = Mutex(false)
            try stage.running {
                try concurrently(2) { index in
                    if index == 0 { return Self.churn(stage, stop) }
                    defer { stop.withLock { $0 = true } }
                    let session = try stage.database.tester.session()
                    var killed: Set<String> = []
                    try eventually("six connections killed") {
                        // One that is killed is there for a moment longer.
                        let rows = try session.queryRows(
                            """
                            select pid, pg_terminate_backend(pid) from pg_stat_activity
                            where datname = current_database() and application_name = 'roost presence'
                            """)
                        killed.formUnion(rows.compactMap { $0[0] })
                        return killed.count >= 6
                    }
                }
                try stage.settle()
                let failures = stage.writer.statistics.failures
                #expect(failures >= 3)
                #expect(stage.notes.all.count { $0.contains("for now; the hub keeps trying") } <= failures)
            }
            #expect(stage.stored() == Self.truth(stage.log))
        }

        /// A clean restart keeps the table, a crash empties it. Nothing changes at the hub meanwhile, so that it must notice
        /// by itself.
        @Test func restartAndCrash() throws {
            let cluster = PostgresCluster.restarted
            let old = PresenceStage(try cluster.migratedDatabase().withUsers())
            for number in 0..<100 { old.log.putRecord(.sample("r\(number)")) }
            old.enter(Database.ann)
            try old.running { try old.settle() }
            try cluster.stop("fast")
            try cluster.start()
            #expect(old.stored().count == 100, "neither the hub nor Postgres runs as before, and all is there")

            let stage = PresenceStage(old.database)
            let restored = stage.writer.restore()
            for record in restored.presences { stage.log.putRecord(record) }
            stage.users.restoreUsers(restored.users, until: 1_000_000)
            try stage.running {
                try stage.settle()
                try cluster.stop("immediate")
                // While it is away.
                stage.log.putRecord(.sample("late"))
                stage.users.advanceTime(to: PresenceStage.time(1001))
                try cluster.start()
                try stage.settle()
                #expect(stage.stored().count == 101)
                #expect(try stage.database.statuses()[0] == "offline 1")
                let failures = stage.writer.statistics.failures
                try stage.database.tester.run(
                    """
                    delete from roost.presence;
                    select pg_terminate_backend(pid) from pg_stat_activity
                    where datname = current_database() and application_name = 'roost presence';
                    """)
                try eventually("all is written anew") { stage.stored().count == 101 }
                #expect(stage.writer.statistics.failures > failures)
            }
        }

        @Test func frozenServerDelaysTheStartByTheLimitOnly() throws {
            let cluster = PostgresCluster.restarted
            let stage = PresenceStage(try cluster.migratedDatabase().prepared(""), restoring: .milliseconds(200))
            let start = ContinuousClock.now
            let restored = frozen(try cluster.processes()) { stage.writer.restore() }
            #expect(restored.presences.isEmpty)
            #expect(ContinuousClock.now - start < .seconds(2))
            #expect(stage.notes.all.count == 1)
            #expect(stage.notes.all.first?.contains("Presences from before the restart are lost") ?? false)
        }

        @Test func frozenServerDelaysTheEndByTheLimitOnly() throws {
            let cluster = PostgresCluster.restarted
            let stage = PresenceStage(try cluster.migratedDatabase().prepared(""), stopping: .milliseconds(200))
            stage.writer.start()
            stage.log.putRecord(.sample("a"))
            try stage.settle()
            frozen(try cluster.processes()) {
                stage.log.putRecord(.sample("b"))
                let start = ContinuousClock.now
                stage.writer.stop()
                #expect(ContinuousClock.now - start < .seconds(2))
            }
            #expect(stage.notes.all.contains { $0.contains("before all changes of presence were written") })
        }

        /// What waits when the hub stops is written, also where the connection was lost a moment ago.
        @Test func stopWritesTheRest() throws {
            // How long that may take is another test's.
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().withUsers(), stopping: .seconds(20))
            stage.writer.start()
            try eventually("a pass") { stage.writer.statistics.passes > 0 }
            for number in 0..<11_000 { stage.log.putRecord(.sample("r\(number)")) }
            stage.enter(Database.ann, at: 5)
            try stage.database.tester.run(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                    + "where datname = current_database() and application_name = 'roost presence'")
            stage.writer.stop()
            #expect(stage.stored().count == 11_000)
            #expect(try stage.database.statuses()[0] == "online 5")
        }

        @Test func waitsForTheSchema() throws {
            let stage = PresenceStage(try PostgresCluster.shared.database())
            #expect(stage.writer.restore().presences.isEmpty)
            #expect(stage.notes.all.isEmpty, "there was nothing to be lost")
            stage.log.putRecord(.sample("a"))
            try stage.running {
                try eventually("several attempts") { stage.writer.statistics.failures >= 3 }
                #expect(stage.writer.statistics.oldestWaiting != nil)
                try Migrator.migrate(conninfo: stage.database.conninfo)
                try stage.settle()
            }
            #expect(stage.stored().map(\.ref) == ["a"])
            #expect(stage.notes.all.count { $0.contains("run `roost migrate`") } == 1)
            #expect(stage.notes.all.last == "info: Presence is written to the database again.")
        }

        @Test func tableThatIsDroppedAndMadeAgain() throws {
            let stage = PresenceStage(try PostgresCluster.shared.migratedDatabase().prepared(""))
            stage.log.putRecord(.sample("a"))
            try stage.running {
                try stage.settle()
                try stage.database.run("create table kept (like roost.presence including all)")
                try stage.database.run("drop table roost.presence")
                stage.log.putRecord(.sample("b"))
                try eventually("a complaint") { stage.writer.statistics.failures >= 2 }
                try stage.database.run("alter table kept set schema roost; alter table roost.kept rename to presence")
                try stage.settle()
            }
            #expect(stage.stored().map(\.ref) == ["a", "b"])
            #expect(stage.notes.all.count { $0.contains("roost.presence") } == 1)
        }

        @Test func aHubThatIsNotTheOwner() throws {
            let database = try PostgresCluster.shared.migratedDatabase()
            try database.run(
                """
                do $$ begin
                    create role lowly_hub login; exception when duplicate_object then null;
                end $$;
                grant usage on schema roost to lowly_hub;
                grant select on all tables in schema roost to lowly_hub;
                grant insert, update, delete on roost.presence, roost.online_user, roost.sign_of_life to lowly_hub;
                """)
            let stage = PresenceStage(
                database.role("lowly_hub"), statement: "select $1::text[], $2::boolean[], $3::timestamptz[]")
            stage.log.putRecord(.sample("a"))
            stage.enter("ann")
            try stage.running {
                try stage.settle()
                stage.log.putRecord(.sample("a", appState: .active))
                stage.leave("ann")
                stage.enter("bob")
                try stage.settle()
            }
            #expect(stage.stored() == [.sample("a", appState: .active)])
            #expect(try database.onlineUsers() == ["a bob"])
            #expect(stage.notes.all.isEmpty)
        }
    }
}
