/// How often systemd wants to hear that a service is alive (`WatchdogSec=`).
package enum SystemdWatchdog {
    /// Half of the time after which systemd would act, as sd_watchdog_enabled(3) advises; nil where it is not asked for.
    ///
    /// - Parameter pid: of this process. The variables may be meant for another one, which they were handed down from.
    package static func interval(environment: [String: String], pid: Int32) -> Duration? {
        guard let text = environment["WATCHDOG_USEC"], let microseconds = Int64(text), microseconds > 0 else {
            return nil
        }
        if let wanted = environment["WATCHDOG_PID"], wanted != String(pid) { return nil }
        return .microseconds(microseconds) / 2
    }
}
