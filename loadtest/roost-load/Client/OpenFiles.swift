import Glibc

/// The limit of open files, which is what caps a process' sockets.
enum OpenFiles {
    static func allow(_ count: Int) throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        guard limit.rlim_max >= rlim_t(count) else {
            throw LoadFailure(
                "\(count) open files are needed and this process may have \(limit.rlim_max) (ulimit -Hn).")
        }
        limit.rlim_cur = limit.rlim_max
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw LoadFailure.system("Raising the limit of open files")
        }
    }
}
