import Glibc
import Hub

/// The machine's clocks.
enum PushClock {
    static func now() -> HubTime {
        HubTime(monotonic: milliseconds(CLOCK_MONOTONIC), unix: milliseconds(CLOCK_REALTIME))
    }

    private static func milliseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}
