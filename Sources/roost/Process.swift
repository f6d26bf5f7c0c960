import Glibc
import Hub

/// Removes secrets from the command line, which `ps` shows to every user of the machine.
///
/// Linux shows the memory that the program was started with (proc(5), cmdline), so overwriting it is enough. Until then
/// they were visible for an instant: the environment and the file are better places.
enum ProcessTitle {
    private static let secretFlags = ["--jwt-secret", "--database-url", "--token", "--url"]

    /// Call once, at the very start, before other threads could read the arguments.
    static func hideSecrets() {
        // Swift copies the arguments on first access, which has to happen before they are overwritten.
        _ = CommandLine.arguments
        var isSecret = false
        for index in 1..<max(1, Int(CommandLine.argc)) {
            guard let argument = CommandLine.unsafeArgv[index] else { continue }
            let text = String(cString: argument)
            if isSecret { overwrite(argument) }
            isSecret = !isSecret && secretFlags.contains(text)
            for flag in secretFlags where text.hasPrefix(flag + "=") { overwrite(argument + flag.utf8.count + 1) }
        }
    }

    private static func overwrite(_ text: UnsafeMutablePointer<CChar>) {
        memset(text, Int32(UInt8(ascii: "*")), strlen(text))
    }
}

/// The limit of open files: every socket is one, or three where the hub ends its TLS (`TLSTunnels`).
enum OpenFiles {
    /// A profile shows Debian's libwebsockets scanning a table as long as the limit at every close. Between limits of
    /// 3,000 and 20,000 this cost about 0.65 ns per entry, in overlapping ranges; higher limits were not measured.
    private static let most: rlim_t = 65_536

    /// Descriptors for other purposes than clients' sockets: connections to Postgres, listeners, files, and connections
    /// that are not upgraded yet. The latter displace each other when few of these are left (`DescriptorRoom`).
    private static let reserve = 128

    /// Returns the number of sockets that clients may have.
    ///
    /// - Parameters:
    ///   - wanted: zero for as many as possible.
    ///   - overTLS: whether the hub ends the TLS.
    static func sockets(wanted: Int, overTLS: Bool) -> Int {
        let most = max(1, (limit - reserve) / (overTLS ? 3 : 1))
        return wanted == 0 ? most : min(wanted, most)
    }

    static var limit: Int {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(clamping: limit.rlim_cur)
    }

    /// Raises the soft limit to the hard one, but not beyond `most`, and returns it.
    @discardableResult
    static func raiseLimit() -> Int {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = min(limit.rlim_max, most)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(clamping: limit.rlim_cur)
    }
}

/// The machine's clocks, for code that is passed the time.
enum Clock {
    static func now() -> HubTime {
        HubTime(monotonic: milliseconds(CLOCK_MONOTONIC), unix: milliseconds(CLOCK_REALTIME))
    }

    private static func milliseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}
