import ChangeFeed
import Foundation
import Postgres
import TestSupport
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Processes that are stopped: the kernel still answers for them, so only a deadline tells.
    @Suite struct FrozenTests {
        enum Victim: CaseIterable { case reader, bell, server }

        /// - Parameter safety: how often a sleeping hub looks by itself.
        func freeze(_ victim: Victim, safety: Duration, within limit: Duration) throws {
            let cluster = victim == .server ? PostgresCluster.restarted : PostgresCluster.shared
            let database = try cluster.migratedDatabase().prepared("create table t (n int)", watching: "t").tester
            var rhythm = Doorbell.Rhythm()
            rhythm.safety = safety
            try Database(conninfo: database.conninfo.replacing(" application_name=tester", with: "")).withFeed(
                rhythm: rhythm
            ) { feed, collector in
                try database.lull(feed, collector, "insert into t values (0)")
                // Else the first thing to hang is the statement that stores it, whose deadline is a longer one.
                try eventually("the cursor is stored") { try database.value(Database.cursorBehindTheChanges) != nil }
                let connections = feed.statistics.connections
                let processes: [pid_t] =
                    switch victim {
                    case .reader: [try database.reader()]
                    case .bell: [try database.bell()]
                    case .server: try cluster.processes()
                    }
                let elapsed = Elapsed()
                try frozen(processes) {
                    if victim != .server { try database.run("insert into t select generate_series(1, 100)") }
                    try eventually("it was noticed") {
                        feed.status != .ready || feed.statistics.connections > connections
                    }
                    print("noticed a frozen \(victim) after \(elapsed.time)")
                    #expect(elapsed.isAtMost(limit), "\(elapsed.time)")
                    guard victim != .server else { return }
                    // Others serve: nothing waits for the frozen one to come back.
                    try eventually("the rows") { collector.count == 101 }
                    print("rows came after \(elapsed.time)")
                    #expect(elapsed.isAtMost(limit * 2), "\(elapsed.time)")
                }
                if victim == .server { try database.run("insert into t select generate_series(1, 100)") }
                try eventually("the rows") { collector.count >= 101 }
                try database.run("insert into t values (101)")
                try eventually("the last row") { collector.count >= 102 }
                #expect(collector.lines == (0...101).map { #"INSERT {"n":\#($0)}"# })
            }
        }

        @Test(arguments: Victim.allCases) func isNoticed(victim: Victim) throws {
            try freeze(victim, safety: .seconds(1), within: .seconds(7))
        }

        @Test(.enabled(if: isSlow), arguments: Victim.allCases) func isNoticedByAnIdleHub(victim: Victim) throws {
            try freeze(victim, safety: Doorbell.Rhythm().safety, within: .seconds(15))
        }

        /// The bell hangs while it waits for a writer: nobody can tell until the writer is done.
        @Test(.enabled(if: isSlow)) func bellThatHangsWhileItWaits() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            try database.withFeed { feed, collector in
                let writer = try database.tester.writerWhoIsWaitedFor("insert into t values (0)")
                let bell = try database.tester.bell()
                let connections = feed.statistics.connections
                let start = ContinuousClock.now
                try frozen([bell]) {
                    // Held for longer than a bell that nobody suspects.
                    usleep(5_000_000)
                    #expect(feed.statistics.connections == connections)
                    try writer.runScript("commit")
                    try eventually("the row", within: .seconds(1)) { collector.count == 1 }
                    try eventually("it was noticed", within: .seconds(10)) {
                        feed.statistics.connections > connections
                    }
                    print(
                        "noticed a bell that hangs after \(ContinuousClock.now - start), 5 s of which were the writer's"
                    )
                }
                try database.tester.run("insert into t values (1)")
                try eventually("the next row") { collector.count == 2 }
            }
        }

        /// Two questions on a session that hangs: each is asked again, alone, on another.
        @Test(.enabled(if: isSlow)) func policies() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(#"{"event":"*","schema":"public","table":"messages"}"#, as: "ann", "bob")
                _ = try stage.join(#"{"event":"*","schema":"public","table":"marker"}"#, as: "ann")
                try database.run("insert into messages values (0, 1, 'x')")
                try eventually("the first message") { stage.shown("ann", group).count == 1 }
                let frozenSession = try database.value(
                    "select pid from pg_stat_activity where application_name = 'roost policies' "
                        + "and datname = current_database()")
                let start = ContinuousClock.now
                try frozen([try #require(frozenSession.flatMap { pid_t($0) })]) {
                    try database.run("insert into messages values (1, 1, 'x')")
                    try eventually("the next message", within: .seconds(12)) { stage.shown("ann", group).count == 2 }
                    print("a message that a frozen policy session judges came after \(ContinuousClock.now - start)")
                }
                try stage.settle(database)
                #expect(stage.shown("ann", group).count == 2 && stage.shown("bob", group).count == 2)
            }
        }

        @Test func authority() throws {
            let stage = try AuthorityStage(
                "create policy all_may on realtime.messages for select to authenticated using (true)")
            #expect(try stage.rights("authenticated", "ann") == "all")
            // An answer that is known is given for a while without asking.
            usleep(300_000)
            let sessions = try stage.database.tester.hubSessions().filter { $0 != stage.session.backendID }
            #expect(sessions.count == 2)
            let start = ContinuousClock.now
            let rights = try frozen(sessions) { try stage.rights("authenticated", "bob") }
            #expect(rights == "all")
            print("a frozen authority answers after \(ContinuousClock.now - start)")
        }

        /// A host that takes connections and never says a word, before one that is well.
        @Test func frozenHostOfSeveral() throws {
            let cluster = PostgresCluster.shared
            let directory = NSTemporaryDirectory() + "roost-mute-" + UUID().uuidString.prefix(8)
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            defer { do { try FileManager.default.removeItem(atPath: directory) } catch { Issue.record(error) } }
            let mute = try #require(listener(at: directory + "/.s.PGSQL.5432"))
            defer { close(mute) }
            let database = try cluster.database()
            let several = database.conninfo.replacing("host=", with: "connect_timeout=2 host=/nowhere,\(directory),")
            let elapsed = Elapsed()
            let session = try DatabaseSession(conninfo: several)
            #expect(try session.queryRows("select 1") == [["1"]])
            #expect(elapsed.time >= .seconds(2) && elapsed.isAtMost(.seconds(4)), "\(elapsed.time)")
        }

        private func listener(at path: String) -> Int32? {
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
            let bound = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            return bound == 0 && listen(descriptor, 8) == 0 ? descriptor : nil
        }
    }
}
