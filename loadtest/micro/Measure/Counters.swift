import CAllocationCount
import Glibc

/// What the calling thread has asked of the allocator.
struct AllocationCount {
    let calls, bytes, freed: Int

    static var now: AllocationCount {
        let now = roost_allocations_now()
        return AllocationCount(calls: Int(now.calls), bytes: Int(now.bytes), freed: Int(now.freed))
    }

    /// What was asked for since an earlier moment.
    func since(_ start: AllocationCount) -> AllocationCount {
        AllocationCount(calls: calls - start.calls, bytes: bytes - start.bytes, freed: freed - start.freed)
    }

    /// Whether this program's memory is counted at all; with another C library than glibc it is not.
    static var isAtWork: Bool {
        let start = now
        blackHole([UInt8](repeating: 1, count: 64))
        return now.since(start).calls > 0
    }
}

/// The processor's instructions of the calling thread. Unlike times they hardly depend on what else the machine does, so
/// two builds are compared by them.
enum InstructionCount {
    /// Nil where they cannot be counted: in many containers and virtual machines.
    static var now: Int? {
        let count = roost_instructions_now()
        return count < 0 ? nil : Int(count)
    }
}

/// The CPU time of the calling thread in nanoseconds: others who use the machine do not count in it.
enum ThreadClock {
    static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
