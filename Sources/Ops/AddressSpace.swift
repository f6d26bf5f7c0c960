import CMalloc
import Glibc

/// The addresses that the process may use, where somebody has limited them (`ulimit -v`, systemd's `LimitAS`).
///
/// glibc's malloc reserves 64 MB for the arena of each thread, eight arenas for each core, of which most is never used. Under a
/// limit that is room which allocations lack: a hub with two loops died below half a gigabyte, though it used 50 MB.
package enum AddressSpace {
    private static let arena: UInt64 = 64 << 20

    /// Leaves three quarters of a limited space to what is used. To be called before there are other threads.
    package static func boundArenas() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0,
            let most = arenas(within: UInt64(limit.rlim_cur)), getenv("MALLOC_ARENA_MAX") == nil
        else { return }
        mallopt(M_ARENA_MAX, most)
    }

    /// How many arenas malloc may have; nil for as many as it likes.
    package static func arenas(within limit: UInt64) -> Int32? {
        limit == UInt64.max ? nil : Int32(clamping: max(1, limit / 4 / arena))
    }
}
