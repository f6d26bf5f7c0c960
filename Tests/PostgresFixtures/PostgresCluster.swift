import Administration
import ChangeFeed
import Foundation
import Postgres
import Synchronization

/// A private Postgres for the tests, on a socket only; stopped when the process ends.
final class PostgresCluster: Sendable {
    static let shared = PostgresCluster()
    /// For tests that stop the server.
    static let restarted = PostgresCluster()

    let directory: String
    private let databases = Mutex(0)
    /// Names of databases with Roost's schema that nobody connects to, one for each set of clients' roles that there was: the
    /// schema grants these what it can when it is installed.
    private let templates = Mutex<Set<String>>([])

    /// - Parameter settings: lines for postgresql.conf.
    init(settings: String = "") {
        directory = NSTemporaryDirectory() + "roost-feed-" + UUID().uuidString.prefix(8)
        do {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            if getuid() == 0 { try Self.run(["chown", "postgres:postgres", directory]) }
            try postgres(
                "initdb", "-D", directory + "/data", "-U", "postgres", "-A", "trust", "--locale=C.UTF-8", "--no-sync")
            // Servers are killed here and machines are not: what is written is in the kernel, and stays.
            let conf = """
                fsync = off
                listen_addresses = ''
                unix_socket_directories = '\(directory)'
                max_connections = 100
                wal_level = logical
                max_replication_slots = 30
                max_wal_senders = 30
                log_min_messages = warning
                autovacuum_naptime = '1h'
                logging_collector = off
                \(settings)
                """
            try conf.write(toFile: directory + "/roost.conf", atomically: true, encoding: .utf8)
            try start()
        } catch {
            fatalError("The test's Postgres does not start: \(error)")
        }
        Self.running.withLock { $0.append(directory) }
        _ = Self.cleanUp
    }

    /// A standby that follows `primary` over its socket; asynchronous.
    init(following primary: PostgresCluster) throws {
        directory = NSTemporaryDirectory() + "roost-feed-" + UUID().uuidString.prefix(8)
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        if getuid() == 0 { try Self.run(["chown", "postgres:postgres", directory]) }
        let directory = directory
        Self.running.withLock { $0.append(directory) }
        _ = Self.cleanUp
        try postgres(
            "pg_basebackup", "-h", primary.directory, "-U", "postgres", "-D", directory + "/data", "-R", "-c", "fast")
        let conf = try String(contentsOfFile: primary.directory + "/roost.conf", encoding: .utf8)
        try conf.replacing(primary.directory, with: directory)
            .write(toFile: directory + "/roost.conf", atomically: true, encoding: .utf8)
        try start()
    }

    func promote() throws { try postgres("pg_ctl", "-D", directory + "/data", "-w", "promote") }

    private static let running = Mutex<[String]>([])
    private static let cleanUp: Int32 = atexit {
        for directory in PostgresCluster.running.withLock({ $0 }) {
            do {
                if FileManager.default.fileExists(atPath: directory + "/data/postmaster.pid") {
                    try PostgresCluster.asPostgres("pg_ctl", "-D", directory + "/data", "-m", "immediate", "stop")
                }
                try FileManager.default.removeItem(atPath: directory)
            } catch {
                print("could not remove \(directory): \(error)")
            }
        }
    }

    func start() throws {
        try postgres(
            "pg_ctl", "-D", directory + "/data", "-l", directory + "/data/log", "-w", "-o",
            "-c config_file=\(directory)/roost.conf -c hba_file=\(directory)/data/pg_hba.conf", "start")
    }

    /// - Parameter mode: `fast` checkpoints, `immediate` crashes.
    func stop(_ mode: String) throws {
        try postgres("pg_ctl", "-D", directory + "/data", "-m", mode, "-w", "stop")
    }

    /// A new, empty database.
    func database() throws -> Database { try database(options: "") }

    /// A new database with Roost's schema, which is a fifth of the work of migrating one.
    func migratedDatabase() throws -> Database {
        let session = try DatabaseSession(conninfo: conninfo("postgres"))
        let roles = try session.queryRows(
            "select rolname from pg_roles where rolname in ('anon', 'authenticated', 'service_role') order by 1")
        let template = "template_for" + roles.map { "_" + ($0[0] ?? "") }.joined()
        try templates.withLock { templates in
            guard !templates.contains(template) else { return }
            try session.runScript("create database \(template)")
            try Migrator.migrate(conninfo: conninfo(template))
            try session.runScript("alter database \(template) allow_connections false")
            templates.insert(template)
        }
        // By copying files, as before Postgres 15: it takes less than the log of all pages.
        let version =
            try session.queryRows("show server_version_num").first?.first.flatMap { $0.flatMap { Int($0) } } ?? 0
        let copy = try database(options: "template \(template)" + (version < 150_000 ? "" : " strategy file_copy"))
        // As young as one that was migrated: nothing written since an epoch of more than ten minutes ago is ever pruned.
        try copy.run("update roost.epoch set made_at = clock_timestamp(), born = pg_current_xact_id()")
        return copy
    }

    private func database(options: String) throws -> Database {
        let number = databases.withLock { number in
            number += 1
            return number
        }
        let name = "test\(number)"
        try DatabaseSession(conninfo: conninfo("postgres")).runScript("create database \(name) \(options)")
        return Database(conninfo: conninfo(name))
    }

    func conninfo(_ database: String, user: String = "postgres") -> String {
        "host=\(directory) dbname=\(database) user=\(user)"
    }

    func postgres(_ arguments: String...) throws { try Self.asPostgres(arguments) }

    private static func asPostgres(_ arguments: String...) throws { try asPostgres(arguments) }

    /// Where Postgres' programs are: what `ROOST_POSTGRES_BIN` names, else those of Debian 12.
    private static let programs =
        ProcessInfo.processInfo.environment["ROOST_POSTGRES_BIN"] ?? "/usr/lib/postgresql/15/bin"

    private static func asPostgres(_ arguments: [String]) throws {
        let path = programs + "/" + arguments[0]
        // Postgres refuses to run as root.
        let user = getuid() == 0 ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : []
        try run(user + [path] + arguments.dropFirst())
    }

    /// Not Foundation's Process: that waits until a daemon the command leaves behind has ended too.
    static func run(_ arguments: [String]) throws {
        struct Failed: Error { let command: String }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for descriptor: Int32 in 0...2 {
            posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
        }
        let texts = arguments.map { strdup($0) } + [nil]
        defer { texts.forEach { free($0) } }
        var child = pid_t()
        var status: Int32 = 0
        guard posix_spawnp(&child, arguments[0], &actions, nil, texts, environ) == 0,
            waitpid(child, &status, 0) == child,
            status == 0
        else { throw Failed(command: arguments.joined(separator: " ")) }
    }
}

/// One database of the cluster.
struct Database: Sendable {
    let conninfo: String

    func session() throws -> DatabaseSession { try DatabaseSession(conninfo: conninfo) }

    func run(_ script: String) throws { try session().runScript(script) }

    /// With roost's schema, these tables and these of them watched.
    func prepared(
        _ tables: String, watching: String...
    ) throws -> Database {
        if try value("select to_regclass('roost.meta')") == nil { try Migrator.migrate(conninfo: conninfo) }
        try run(tables)
        for table in watching { try Watcher.watch(table, conninfo: conninfo) }
        return self
    }

    func also(_ script: String, watching table: String) throws -> Database {
        try run(script)
        try Watcher.watch(table, conninfo: conninfo)
        return self
    }
}

extension Database {
    /// As SQL writes it.
    var name: String {
        conninfo.split(separator: " ").first { $0.hasPrefix("dbname=") }.map { String($0.dropFirst(7)) } ?? ""
    }
}
