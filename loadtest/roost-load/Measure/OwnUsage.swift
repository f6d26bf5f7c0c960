import Glibc

/// What the load tester itself costs, in µs of CPU: a tester that costs more than the hub measures itself.
struct OwnUsage: Codable, Sendable {
    /// The calling thread, which is the one that receives.
    let receiving: Double
    let process: Double

    static var now: OwnUsage {
        OwnUsage(receiving: cpu(CLOCK_THREAD_CPUTIME_ID), process: cpu(CLOCK_PROCESS_CPUTIME_ID))
    }

    private static func cpu(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }
}
