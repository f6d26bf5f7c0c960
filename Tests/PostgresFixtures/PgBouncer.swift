import Foundation
import Glibc

/// A PgBouncer in front of a cluster, on a socket only; it ends with `stop`.
struct PgBouncer {
    private let directory: String

    /// - Parameter mode: `transaction`, `session` or `statement`.
    init(_ cluster: PostgresCluster, mode: String, settings: String = "") throws {
        directory = cluster.directory + "/bouncer-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let configuration = """
            [databases]
            * = host=\(cluster.directory)
            [pgbouncer]
            listen_addr =
            unix_socket_dir = \(directory)
            listen_port = 5432
            auth_type = any
            pool_mode = \(mode)
            pidfile = \(directory)/pid
            logfile = \(directory)/log
            \(settings)
            """
        try configuration.replacing("* = host", with: "* = user=postgres host")
            .write(toFile: directory + "/ini", atomically: true, encoding: .utf8)
        try PostgresCluster.run(["chown", "-R", "postgres", directory])
        let directory = directory
        try PostgresCluster.run(
            (getuid() == 0 ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : [])
                + ["/usr/sbin/pgbouncer", "-d", directory + "/ini"])
        try eventually("PgBouncer listens") {
            FileManager.default.fileExists(atPath: directory + "/.s.PGSQL.5432") && process != nil
        }
    }

    private var process: pid_t? {
        guard let text = FileManager.default.contents(atPath: directory + "/pid") else { return nil }
        return pid_t(String(decoding: text, as: UTF8.self).filter(\.isNumber))
    }

    /// By a signal that cannot be blocked: the daemon inherits what the threads of a Swift test block, SIGTERM among it.
    func stop() {
        if let process { kill(process, SIGKILL) }
    }

    func database(_ database: Database) -> Database {
        Database(conninfo: "host=\(directory) dbname=\(database.name) user=postgres")
    }
}
