import Administration
import ChangeFeed
import Foundation
import Postgres
import TestSupport
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Where there is no room: on the disk, and in the queue of notifications.
    @Suite struct RoomTests {
        /// A trigger says what a full disk would (53100).
        @Test func cursorThatCannotBeStored() throws {
            let log = Notes()
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            let collector = Collector()
            let feed = ChangeFeed(
                configuration: FeedConfiguration(conninfo: database.conninfo, node: "test"), logger: .noting(log),
                consumer: collector)
            feed.start()
            defer { feed.stop() }
            try eventually("the feed is ready") { feed.status == .ready }
            let stored = "select snapshot from roost.cursor"
            let before = try database.value(stored)
            try database.run(
                """
                create function full_disk() returns trigger language plpgsql as $$
                begin raise 'could not extend file: No space left on device' using errcode = '53100'; end $$;
                create trigger full_disk before insert or update on roost.cursor
                    for each row execute function full_disk();
                """)
            for n in 0..<20 {
                try database.run("insert into t values (\(n))")
                try eventually("row \(n)") { collector.count == n + 1 }
            }
            try eventually("a warning") { log.all.contains { $0.contains("No space left on device") } }
            #expect(try database.value(stored) == before)
            try database.run("drop trigger full_disk on roost.cursor")
            try eventually("the cursor is stored") { try database.value(stored) != before }
            try eventually("a word about it") { log.all.contains { $0.contains("is stored again") } }
            #expect(log.all.filter { $0.contains("No space left") }.count == 1)
            #expect(feed.statistics.connections == 1)
        }

        /// Killed then, it would be followed by one that takes it that nobody was there, and brings nobody what was missed.
        @Test func aHubWhoseFirstCursorCannotBeStoredServesNobodyYet() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            try database.run(
                """
                create function full_disk() returns trigger language plpgsql as $$
                begin raise 'could not extend file: No space left on device' using errcode = '53100'; end $$;
                create trigger full_disk before insert or update on roost.cursor
                    for each row execute function full_disk();
                """)
            var configuration = FeedConfiguration(conninfo: database.conninfo, node: "test")
            configuration.firstRetry = .milliseconds(100)
            let feed = ChangeFeed(configuration: configuration, logger: .silent, consumer: Collector())
            feed.start()
            defer { feed.stop() }
            try eventually("a word about it") {
                guard case .connecting(let reason?) = feed.status else { return false }
                return reason.contains("roost.cursor") && reason.contains("No space left on device")
            }
            try database.run("drop trigger full_disk on roost.cursor")
            try eventually("the feed is ready") { feed.status == .ready }
            #expect(try database.value("select count(*) from roost.cursor") == "1")
        }

        /// The outbox and the cursor on a disk of 16 MB, which something else fills.
        @Test(.enabled(if: isSlow && getuid() == 0)) func fullDisk() throws {
            let directory = NSTemporaryDirectory() + "roost-disk-" + UUID().uuidString.prefix(8)
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            #expect(mount("tmpfs", directory, "tmpfs", 0, "size=16m") == 0)
            defer {
                // The cluster, which outlives the test, still has files open there.
                umount2(directory, Int32(MNT_DETACH))
                rmdir(directory)
            }
            let owner = try #require(getpwnam("postgres")).pointee
            chown(directory, owner.pw_uid, owner.pw_gid)
            let cluster = PostgresCluster(settings: "autovacuum = off")
            let database = try cluster.migratedDatabase().prepared("create table t (n int, body text)", watching: "t")
            try database.run("create tablespace small location '\(directory)'")
            try database.run(
                "alter table roost.change set tablespace small; alter table roost.cursor set tablespace small")
            let log = Notes()
            let collector = Collector()
            let feed = ChangeFeed(
                configuration: FeedConfiguration(conninfo: database.conninfo, node: "test"), logger: .noting(log),
                consumer: collector)
            feed.start()
            defer { feed.stop() }
            try eventually("the feed is ready") { feed.status == .ready }
            let insert = "insert into t select g, repeat('x', 1000) from generate_series(1, 100) g"
            let filler = directory + "/filler"
            let bytes = Data(count: 64_000)
            _ = FileManager.default.createFile(atPath: filler, contents: nil)
            let file = try #require(FileHandle(forWritingAtPath: filler))
            do { while true { try file.write(contentsOf: bytes) } } catch {
                print("full: \(error.localizedDescription)")
            }
            var rows = 0
            var refusal: PostgresError?
            while refusal == nil {
                do {
                    try database.run(insert)
                    rows += 100
                } catch let error as PostgresError { refusal = error }
            }
            #expect(refusal?.sqlState == "53100")
            try eventually("what was committed") { collector.count == rows }
            for _ in 0..<50 { #expect(throws: PostgresError.self) { try database.run(insert) } }
            try FileManager.default.removeItem(atPath: filler)
            try file.close()
            try database.run(insert)
            try eventually("what comes after") { collector.count == rows + 100 }
            #expect(feed.statistics.connections == 1)
            print("on a full disk: \(refusal?.message ?? ""), and the hub said \(log.all)")
        }

        /// Eight gigabytes of notifications that a session which sits in a transaction does not read.
        @Test(.enabled(if: isSlow)) func fullQueueFailsNoWriter() throws {
            let cluster = PostgresCluster(settings: "max_wal_size = 1GB")
            let database = try cluster.migratedDatabase().prepared("create table t (n int)", watching: "t")
            try database.withFeed { feed, collector in
                let culprit = try DatabaseSession(conninfo: database.conninfo + " application_name=culprit")
                try culprit.runScript("listen noise")
                try culprit.runScript("begin; select 1")
                let session = try database.session()
                var fills = 0
                while Double(try database.value("select pg_notification_queue_usage()") ?? "") ?? 0 < 0.999, fills < 200
                {
                    fills += 1
                    do {
                        try session.runScript(
                            "select count(pg_notify('noise', g || repeat('x', 7900))) from generate_series(1, 10000) g")
                    } catch let error as PostgresError where error.message.contains("too many notifications") {
                        break
                    }
                }
                let finding = Doctor.examineDatabase(conninfo: database.conninfo).first { $0.subject == "queue" }
                print("after \(fills) fills: \(finding?.message ?? "no finding")")
                #expect(finding?.severity == .error && finding?.message.contains("culprit") ?? false)
                #expect(throws: PostgresError.self) {
                    for _ in 0..<1000 { try session.runScript("select pg_notify('noise', repeat('x', 7900))") }
                }
                for n in 0..<3 {
                    try eventually("sleep") { feed.statistics.dozes > n }
                    try session.runScript("insert into t values (\(n))")
                    let elapsed = Elapsed()
                    try eventually("row \(n)") { collector.count == n + 1 }
                    #expect(elapsed.isAtMost(.seconds(6)), "\(elapsed.time)")
                }
                // Not by a commit: it would have to read eight gigabytes first.
                try database.run("select pg_terminate_backend(\(culprit.backendID))")
            }
        }
    }
}
