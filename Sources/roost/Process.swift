import Glibc
import Hub

/// Takes secrets out of the command line as `ps` shows it to every user of the machine.
///
/// Linux shows the memory that the program was started with (proc(5), cmdline), so overwriting it there is enough. For
/// the instant between the start and this it was to be seen: the environment and the file are better places.
enum ProcessTitle {
    private static let secretFlags = ["--jwt-secret", "--database-url", "--token", "--url"]

    /// Call once, at the very start, before other threads could read the arguments.
    static func hideSecrets() {
        // Swift copies the arguments when they are first asked for; that has to happen before they are gone.
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
    /// A profile shows libwebsockets of Debian walking a table as long as the limit at every close. Between limits of
    /// 3,000 and 20,000 that came to about 0.65 ns an entry, in ranges that overlap; nothing above was measured.
    private static let most: rlim_t = 65_536

    /// For what is no client's: connections to Postgres, listeners, files, and connections that are not upgraded yet. Those make room
    /// for each other where little of this is left (`DescriptorRoom`).
    private static let reserve = 128

    /// How many sockets clients may have.
    ///
    /// - Parameters:
    ///   - wanted: zero for as many as possible.
    ///   - overTLS: the hub ends it.
    static func sockets(wanted: Int, overTLS: Bool) -> Int {
        let most = max(1, (limit - reserve) / (overTLS ? 3 : 1))
        return wanted == 0 ? most : min(wanted, most)
    }

    static var limit: Int {
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

/// The machine's clocks, for those who are passed a time.
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
