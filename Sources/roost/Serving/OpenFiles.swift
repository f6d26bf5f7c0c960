import Glibc

/// The limit of open files: every socket is one.
enum OpenFiles {
    /// A profile shows libwebsockets of Debian walking a table as long as the limit at every close. Between limits of
    /// 3,000 and 20,000 that came to about 0.65 ns an entry, in ranges that overlap; nothing above was measured.
    private static let most: rlim_t = 65_536

    /// For what is no client's: connections to Postgres, listeners, files, and connections that are not upgraded yet.
    private static let reserve = 128

    /// The sockets that clients may have; `wanted` is zero for as many as possible.
    static func sockets(wanted: Int) -> Int {
        let most = max(1, limit - reserve)
        return wanted == 0 ? most : min(wanted, most)
    }

    private static var limit: Int {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(clamping: limit.rlim_cur)
    }

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
