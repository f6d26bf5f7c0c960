import ChangeFeed
import Foundation
import Hub
import Synchronization
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// `pg_terminate_backend` of any of the hub's sessions at any time, under writes.
    @Suite struct TerminationTests {
        @Test func atRandom() throws {
            let kills = isSlow ? 50 : 12
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            let stop = Mutex(false)
            let written = Mutex(0)
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(
                    #"{"event":"INSERT","schema":"public","table":"messages"}"#, as: "ann", "bob")
                _ = try stage.join(#"{"event":"*","schema":"public","table":"marker"}"#, as: "ann")
                try concurrently(2) { index in
                    let session = try database.tester.session()
                    if index == 0 {
                        while !stop.withLock({ $0 }) {
                            let n = written.withLock { $0 }
                            try session.runScript("insert into messages values (\(n), 1, 'x')")
                            written.withLock { $0 += 1 }
                            if n % 40 == 0 { usleep(30_000) }
                        }
                        return
                    }
                    defer { stop.withLock { $0 = true } }
                    var generator = SystemRandomNumberGenerator()
                    var killed: [String: Int] = [:]
                    while killed.values.reduce(0, +) < kills {
                        usleep(UInt32.random(in: 0...200_000, using: &generator))
                        let victims = try session.queryRows(
                            """
                            select pid, case when application_name = 'roost policies' then 'policies'
                                when exists (select from pg_locks l where l.pid = a.pid and classid = 1919905651
                                    and mode = 'ExclusiveLock') then 'bell' else 'reader or bell' end
                            from pg_stat_activity a where datname = current_database() and pid <> pg_backend_pid()
                                and application_name like 'roost%'
                            """)
                        guard let victim = victims.randomElement(using: &generator), let pid = victim[0] else {
                            continue
                        }
                        if try session.queryRows("select pg_terminate_backend($1::int4)", [pid]) == [["t"]] {
                            killed[victim[1] ?? "", default: 0] += 1
                        }
                    }
                    print("terminated \(killed) while \(written.withLock { $0 }) rows were written")
                }
                let total = written.withLock { $0 }
                try eventually("all rows", within: .seconds(30)) { stage.count >= total }
                try stage.settle(database)
                for subject in ["ann", "bob"] {
                    let ids = stage.shown(subject, group).compactMap { $0.firstMatch(of: /"id":(\d+)/)?.output.1 }
                    #expect(ids.compactMap { Int($0) } == Array(0..<total), "nothing lost, nothing twice, in order")
                }
            }
        }

        /// The authority's two sessions: a question in between is answered by fresh ones.
        @Test func authority() throws {
            let stage = try AuthorityStage(
                "create policy all_may on realtime.messages for select to authenticated using (true)")
            for round in 0..<(isSlow ? 50 : 10) {
                #expect(try stage.rights("authenticated", "ann") == "all", "round \(round)")
                let session = try stage.database.tester.session()
                _ = try session.queryRows(
                    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
                        + "and pid <> pg_backend_pid() and application_name like 'roost%' "
                        + "and pid <> \(stage.session.backendID) and random() < 0.7")
            }
        }
    }
}
