import Foundation

/// Runs one program to its end.
///
/// Foundation's `Process` is not used: on Linux it takes a child for running as long as anything holds the socket it was
/// given, and a server that pg_ctl leaves behind holds it for good.
enum ChildProcess {
    struct Outcome {
        let status: Int32
        /// Standard output and standard error.
        let output: String
    }

    static func run(_ path: String, _ arguments: [String]) throws -> Outcome {
        // A file, not a pipe: a server that is left behind keeps it open, and a pipe would never end.
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
        // A user who may not look into the caller's folder cannot start there.
        let words = ["/usr/bin/env", "--chdir=/", path] + arguments
        var pointers: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var child = pid_t()
        let failure = posix_spawn(&child, words[0], &actions, nil, &pointers, environ)
        guard failure == 0 else { throw POSIXError(POSIXErrorCode(rawValue: failure) ?? .EIO) }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        let text = try String(contentsOfFile: String(cString: name), encoding: .utf8)
        return Outcome(status: status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F, output: text)
    }
}
