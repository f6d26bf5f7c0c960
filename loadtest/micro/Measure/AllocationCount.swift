import CAllocationCount

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
