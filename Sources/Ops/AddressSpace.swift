import CMalloc
import Glibc

/// Limits malloc if the process's address space is limited (`ulimit -v`, systemd's `LimitAS`).
///
/// glibc's malloc reserves 64 MB for the arena of each thread, eight arenas per core, most of which is never used.
/// Under a limit, allocations lack that room: a hub with two loops died below half a gigabyte, though it used 50 MB.
package enum AddressSpace {
    private static let arena: UInt64 = 64 << 20

    /// Leaves three quarters of a limited address space to actual use. Call before other threads start.
    package static func boundArenas() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0,
            let most = arenas(within: UInt64(limit.rlim_cur)), getenv("MALLOC_ARENA_MAX") == nil
        else { return }
        mallopt(M_ARENA_MAX, most)
    }

    /// The most arenas for malloc; nil for no limit.
    package static func arenas(within limit: UInt64) -> Int32? {
        limit == UInt64.max ? nil : Int32(clamping: max(1, limit / 4 / arena))
    }
}
