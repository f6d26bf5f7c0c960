package import Foundation

/// The demo's own Postgres cluster: on loopback and a socket, with its data kept between runs.
package struct PrivateCluster {
    package let port: Int
    private let root: URL
    private let programs: URL
    /// Postgres refuses to run as root; its package creates this user.
    private let runsAsPostgres: Bool

    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// - Parameters:
    ///   - folder: the folder for the data. If the `postgres` user cannot access it (a home of root's), a folder below /var/tmp is used
    ///     instead.
    ///   - programs: the folder of Postgres' programs; nil for the newest of Debian's packages.
    package init(folder: URL, port: Int, programs: String?) throws {
        self.port = port
        self.programs = try programs.map(Self.programs(in:)) ?? Self.findPrograms()
        runsAsPostgres = geteuid() == 0
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        if runsAsPostgres, !Self.canReach(folder) {
            let name = "roost-" + folder.path.split(separator: "/").joined(separator: "-")
            root = URL(fileURLWithPath: "/var/tmp").appendingPathComponent(name)
        } else {
            root = folder
        }
    }

    private var data: URL { root.appendingPathComponent("postgres") }
    private var log: URL { root.appendingPathComponent("postgres.log") }
    private var socketFolder: URL { root.appendingPathComponent("run") }

    package func conninfo(database: String) -> String {
        "postgresql://postgres@127.0.0.1:\(port)/\(database)"
    }

    /// Starts the cluster, creating it first if necessary.
    package func start() throws {
        for folder in [root, socketFolder] {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            if runsAsPostgres { try Self.execute("/bin/chown", ["postgres", folder.path]) }
        }
        try checkVersion()
        if !exists {
            try postgres(
                "initdb", ["-D", data.path, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"])
        }
        if isRunning { return }
        let options =
            "-p \(port) -c listen_addresses=127.0.0.1 -c unix_socket_directories='\(socketFolder.path)' "
            + "-c max_connections=100 -c track_commit_timestamp=on -c log_min_messages=warning"
        do {
            try postgres("pg_ctl", ["-D", data.path, "-l", log.path, "-o", options, "-w", "-t", "30", "start"])
        } catch {
            throw Failure(
                description: "The demo's Postgres does not start on port \(port); its log is \(log.path). "
                    + "If the port is taken, choose another with --postgres-port.")
        }
    }

    package func stop() throws {
        if isRunning { try postgres("pg_ctl", ["-D", data.path, "-m", "fast", "-w", "-t", "30", "stop"]) }
    }

    package func createDatabase(_ name: String) throws {
        do {
            try postgres("createdb", ["-h", "127.0.0.1", "-p", String(port), "-U", "postgres", name])
        } catch let failure as Failure where failure.description.contains("already exists") {
            return
        }
    }

    /// Deletes the data; the cluster must not be running.
    package func remove() throws {
        try stop()
        if FileManager.default.fileExists(atPath: data.path) { try FileManager.default.removeItem(at: data) }
    }

    private var exists: Bool {
        // Asked as the owner: root in a container may lack the right to look.
        do {
            try postgres("pg_controldata", ["-D", data.path])
            return true
        } catch {
            return false
        }
    }

    /// Checks the version of the data: a server reads only that of its own major version, and reports the problem only in its log.
    private func checkVersion() throws {
        let theirs: String
        do {
            theirs = try postgres("cat", in: "/usr/bin", [data.path + "/PG_VERSION"])
        } catch {
            // The data does not exist yet; otherwise initdb, which comes next, reports the problem.
            return
        }
        // `postgres (PostgreSQL) 15.4 (Debian 15.4-1)`.
        let ours = try postgres("postgres", ["--version"]).split(separator: " ").compactMap { Double($0) }.first
        guard let ours, let made = Int(theirs), Int(ours) != made else { return }
        throw Failure(
            description: "The demo's data in \(data.path) was made by Postgres \(made), but \(programs.path) is "
                + "Postgres \(Int(ours)): name the programs of Postgres \(made) with ROOST_POSTGRES_BIN, choose "
                + "another --folder, or throw the data away with --fresh.")
    }

    private var isRunning: Bool {
        do {
            try postgres("pg_ctl", ["-D", data.path, "status"])
            return true
        } catch {
            return false
        }
    }

    // MARK: Programs

    private static func programs(in folder: String) throws -> URL {
        guard FileManager.default.isExecutableFile(atPath: folder + "/initdb") else {
            throw Failure(
                description: "ROOST_POSTGRES_BIN is \(folder), where there is no initdb; name the folder of Postgres' "
                    + "programs, such as /usr/lib/postgresql/15/bin.")
        }
        return URL(fileURLWithPath: folder).standardizedFileURL
    }

    private static func findPrograms() throws -> URL {
        let base = URL(fileURLWithPath: "/usr/lib/postgresql")
        var versions: [String] = []
        if FileManager.default.fileExists(atPath: base.path) {
            versions = try FileManager.default.contentsOfDirectory(atPath: base.path)
        }
        let newest = versions.compactMap(Int.init).max()
        guard let newest else {
            throw Failure(
                description: "There are no programs of a Postgres in \(base.path), and the demo starts one of its own; "
                    + "install them (Debian: apt-get install postgresql), or name their folder with ROOST_POSTGRES_BIN."
            )
        }
        return base.appendingPathComponent("\(newest)/bin")
    }

    private static func canReach(_ folder: URL) -> Bool {
        do {
            try execute("/usr/bin/setpriv", ["--reuid=postgres", "--clear-groups", "/usr/bin/test", "-x", folder.path])
            return true
        } catch {
            return false
        }
    }

    /// Runs a program as the user who owns the data.
    ///
    /// - Parameter folder: the folder of the program; nil for Postgres' own.
    /// - Returns: the last line of its output.
    @discardableResult
    private func postgres(_ program: String, in folder: String? = nil, _ arguments: [String]) throws -> String {
        let path = (folder ?? programs.path) + "/" + program
        guard runsAsPostgres else { return try Self.execute(path, arguments) }
        return try Self.execute(
            "/usr/bin/setpriv", ["--reuid=postgres", "--regid=postgres", "--init-groups", path] + arguments)
    }

    @discardableResult
    private static func execute(_ path: String, _ arguments: [String]) throws -> String {
        let outcome = try ChildProcess.run(path, arguments)
        let lastLine = outcome.output.split(separator: "\n").last.map(String.init)
        guard outcome.status == 0 else { throw Failure(description: lastLine ?? "\(path) failed") }
        return lastLine ?? ""
    }
}

/// Runs one program until it ends.
///
/// Foundation's `Process` is not used: on Linux it considers a child running as long as any process holds the socket given to the
/// child, and a server left behind by pg_ctl holds it for good.
enum ChildProcess {
    struct Outcome {
        let status: Int32
        /// Standard output and standard error.
        let output: String
    }

    static func run(_ path: String, _ arguments: [String]) throws -> Outcome {
        // A file, not a pipe: a server left behind keeps it open, and a pipe would never end.
        var name = Array((NSTemporaryDirectory() + "/roost-XXXXXX").utf8CString)
        let file = mkstemp(&name)
        guard file >= 0 else { throw POSIXError(.EIO) }
        defer {
            close(file)
            unlink(name)
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, file, 1)
        posix_spawn_file_actions_adddup2(&actions, file, 2)
        // A user without access to the caller's folder cannot start there.
        let words = ["/usr/bin/env", "--chdir=/", path] + arguments
        var pointers: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var child = pid_t()
        let failure = posix_spawn(&child, words[0], &actions, nil, &pointers, environ)
        guard failure == 0 else { throw POSIXError(POSIXErrorCode(rawValue: failure) ?? .EIO) }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        let written = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let text = try String(contentsOfFile: written, encoding: .utf8)
        return Outcome(status: status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F, output: text)
    }
}
