import Glibc

/// The CPU time of the calling thread in nanoseconds: others who use the machine do not count in it.
enum ThreadClock {
    static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
