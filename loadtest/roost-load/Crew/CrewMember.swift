import CLoad
import Glibc

/// A worker as its parent sees it: a copy of this program, and the line to it.
struct CrewMember {
    let process: pid_t
    let link: Link

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw LoadFailure.system("Making a line to a worker")
        }
        defer { close(ends[1]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // Two steps: a descriptor that is in its place already would keep its flag and be closed.
        posix_spawn_file_actions_adddup2(&actions, ends[1], WorkerProcess.descriptor + 1)
        posix_spawn_file_actions_adddup2(&actions, WorkerProcess.descriptor + 1, WorkerProcess.descriptor)
        posix_spawn_file_actions_addclose(&actions, WorkerProcess.descriptor + 1)
        let arguments: [UnsafeMutablePointer<CChar>?] = [strdup("roost-load"), strdup("worker"), nil]
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        let status = posix_spawn(&process, "/proc/self/exe", &actions, nil, arguments, environ)
        guard status == 0 else {
            close(ends[0])
            throw LoadFailure.system("Starting a worker", status)
        }
        self.process = process
        link = Link(descriptor: ends[0])
    }

    /// Waits until it has ended, which it does of itself unless it hangs in a call.
    func dismiss() {
        close(link.descriptor)
        kill(process, SIGTERM)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
    }
}
