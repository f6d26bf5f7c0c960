import Glibc

/// The limit of open files: every socket is one.
enum OpenFiles {
    /// libwebsockets of Debian walks its whole table of files, which is as long as the limit, at every close: 0.65 ns an
    /// entry, measured up to 20,000.
    private static let most: rlim_t = 65_536

    /// Raises the soft limit as far as the hard one and good sense allow, and returns it.
    @discardableResult
    static func raiseLimit() -> Int {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = min(limit.rlim_max, most)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(clamping: limit.rlim_cur)
    }
}
