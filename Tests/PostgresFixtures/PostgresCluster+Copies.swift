import Foundation

/// Ways in which a database comes to be another one, or an earlier one.
extension PostgresCluster {
    /// Restores a dump of a database of another cluster as a new database of this one.
    func restored(from database: Database) throws -> Database {
        let copy = try self.database()
        try copy.createClientRoles()
        let file = directory + "/dump-\(UUID().uuidString.prefix(8))"
        try postgres("pg_dump", "-d", database.conninfo, "-Fc", "-f", file)
        try postgres("pg_restore", "-d", copy.conninfo, "--exit-on-error", file)
        return copy
    }

    /// Copies the files, as a snapshot of the volume would; the server is stopped for it.
    func copyOfFiles() throws -> String {
        let copy = directory + "/copy-\(UUID().uuidString.prefix(8))"
        try stop("fast")
        try Self.run(["cp", "-a", directory + "/data", copy])
        try start()
        return copy
    }

    /// Copies the files while the server runs.
    func backup() throws -> String {
        let copy = directory + "/backup-\(UUID().uuidString.prefix(8))"
        try postgres("pg_basebackup", "-h", directory, "-U", "postgres", "-D", copy, "-c", "fast", "--no-sync")
        return copy
    }

    /// Starts from a backup that was put back, and ends recovery where a setting says. Returns when the server takes writes: it
    /// answers readers before.
    func recover(to target: String) throws {
        let settings = "restore_command = 'false'\n\(target)\nrecovery_target_action = 'promote'\n"
        try settings.write(toFile: directory + "/data/postgresql.auto.conf", atomically: true, encoding: .utf8)
        try "".write(toFile: directory + "/data/recovery.signal", atomically: true, encoding: .utf8)
        try Self.run(["chmod", "644", directory + "/data/postgresql.auto.conf", directory + "/data/recovery.signal"])
        try start()
        let maintenance = Database(conninfo: conninfo("postgres"))
        try eventually("the end of recovery") { try maintenance.value("select pg_is_in_recovery()") == "f" }
    }

    /// Puts a copy back; the server crashes, and does not start.
    func putBack(_ copy: String) throws {
        try stop("immediate")
        try FileManager.default.removeItem(atPath: directory + "/data")
        try Self.run(["cp", "-a", copy, directory + "/data"])
    }
}

extension Database {
    /// Uses up transaction ids.
    func spend(_ transactions: Int) throws {
        try run(
            "do $$ begin for i in 1..\(transactions) loop perform pg_current_xact_id(); commit; end loop; end $$")
    }

    /// The same name on one server, and on another where the first does not answer.
    func orAt(_ other: PostgresCluster, _ own: PostgresCluster) -> Database {
        Database(conninfo: conninfo.replacing(own.directory, with: "\(own.directory),\(other.directory)"))
    }
}
