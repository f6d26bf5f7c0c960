import ChangeFeed
import Foundation
import Hub
import Postgres

/// Tests that take more than a few seconds run with ROOST_SLOW=1 only.
let isSlow = getenv("ROOST_SLOW") != nil

extension Database {
    /// The same database for what is no hub: sessions of the hub's are told by their names.
    var tester: Database { Database(conninfo: conninfo + " application_name=tester") }

    /// A row where a stored cursor covers all changes that were written. Without max(), which xid8 lacks before 15.
    static let cursorBehindTheChanges = """
        select 1 from roost.cursor
        where pg_snapshot_xmax(snapshot) > (select xid from roost.change order by xid desc limit 1)
        """

    /// The process of the session that waits for the doorbell, or has it.
    func bell() throws -> pid_t {
        try pid(
            "select pid from pg_locks where locktype = 'advisory' and classid = 1919905651 and mode = 'ExclusiveLock'")
    }

    /// The process of the feed's session that reads and listens.
    func reader() throws -> pid_t {
        let bell = try bell()
        return try pid("select pid from \(Self.sessions) and application_name = 'roost' and pid <> \(bell)")
    }

    func hubSessions() throws -> [pid_t] {
        try session().queryRows("select pid from \(Self.sessions) and application_name like 'roost%'").compactMap {
            $0[0].flatMap { pid_t($0) }
        }
    }

    private static let sessions =
        "pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() "
        + "and application_name <> 'tester'"

    private func pid(_ sql: String) throws -> pid_t {
        var found: pid_t?
        try eventually("a process for: \(sql)") {
            found = try value(sql).flatMap { pid_t($0) }
            return found != nil
        }
        guard let found else { throw TooLate(description: "no process for: \(sql)") }
        return found
    }

    /// Writes one row and waits until the feed, which had been asleep, has handed it on and sleeps again.
    func lull(_ feed: ChangeFeed, _ collector: Collector, _ statement: String) throws {
        try eventually("sleep") { feed.statistics.dozes > 0 }
        let (dozes, count) = (feed.statistics.dozes, collector.count)
        try run(statement)
        try eventually("sleep after a row") { collector.count > count && feed.statistics.dozes > dozes }
    }

    /// A transaction of a writer who has the doorbell's lock, and for whom the bell waits.
    func writerWhoIsWaitedFor(_ statement: String) throws -> DatabaseSession {
        let writer = try session()
        try eventually("a writer that the bell waits for") {
            try writer.runScript("rollback")
            try writer.runScript("notify roost")
            try writer.runScript("begin; \(statement)")
            let waiting = "select 1 from pg_locks where locktype = 'advisory' and classid = 1919905651 and not granted"
            for _ in 0..<20 {
                if try value(waiting) != nil { return true }
                usleep(5000)
            }
            return false
        }
        return writer
    }
}

extension PostgresCluster {
    /// The postmaster and all of its children.
    func processes() throws -> [pid_t] {
        let file = try String(contentsOfFile: directory + "/data/postmaster.pid", encoding: .utf8)
        guard let postmaster = file.split(separator: "\n").first.flatMap({ pid_t($0) }) else {
            throw TooLate(description: "no process in postmaster.pid")
        }
        let children = try String(contentsOfFile: "/proc/\(postmaster)/task/\(postmaster)/children", encoding: .utf8)
        return [postmaster] + children.split(separator: " ").compactMap { pid_t($0) }
    }

    /// Crashes all at once, as a power cut would.
    func crash() throws {
        for process in try processes() { kill(process, SIGKILL) }
        try FileManager.default.removeItem(atPath: directory + "/data/postmaster.pid")
    }
}

/// Stops the processes while the body runs.
func frozen<Outcome>(_ processes: [pid_t], _ body: () throws -> Outcome) rethrows -> Outcome {
    for process in processes { kill(process, SIGSTOP) }
    defer { for process in processes { kill(process, SIGCONT) } }
    return try body()
}
