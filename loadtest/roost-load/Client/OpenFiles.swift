import Glibc

/// The limit of open files, which is what caps a process' sockets.
enum OpenFiles {
    /// For the poller, the link to the parent, sessions with Postgres and what libraries hold.
    static let spare = 64

    static func allow(_ count: Int) throws {
        var limit = current
        guard limit.rlim_max >= rlim_t(count) else {
            throw LoadFailure(
                "\(count) open files are needed in one process, which may have \(limit.rlim_max) (ulimit -Hn); "
                    + "more --workers share them.")
        }
        limit.rlim_cur = limit.rlim_max
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw LoadFailure.system("Raising the limit of open files")
        }
    }

    /// How many sockets one worker can hold.
    static var socketsPerProcess: Int { max(1, Int(min(current.rlim_max, 1 << 20)) - spare) }

    private static var current: rlimit {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return limit
    }
}
