import CMalloc
import Dispatch
import Synchronization

/// Gives memory back to the operating system that was needed once and is free now.
///
/// glibc's malloc has an arena for each thread and keeps what it had: a block that lives long is enough to keep all that
/// lies before it. After 300 presences of 60 KB in five channels that was more than half of the hub's memory, for ever.
/// `malloc_trim` takes the whole pages out of all arenas. It holds the lock of each meanwhile, so it is called where there is
/// much to be had, and not in the middle of a burst, which would take it again.
package final class MemoryReturn: Sendable {
    /// Seconds between two looks; memory is given back at the second that finds it spare.
    private static let rhythm = 20
    private let rule = Mutex(SpareMemory())

    package init() {}

    package func begin() {
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .seconds(Self.rhythm)) { [self] in
            look()
            begin()
        }
    }

    private func look() {
        let due = rule.withLock { $0.isDue(spare: Self.spareBytes) }
        guard due else { return }
        malloc_trim(0)
        rule.withLock { $0.wasReturned(leaving: Self.spareBytes) }
    }

    /// What is in memory for malloc, and not in use: what belongs to no file, less what was asked for.
    private static var spareBytes: Int {
        let information = mallinfo2()
        return ProcessFigures.anonymousBytes - Int(information.uordblks) - Int(information.hblkhd)
    }
}

/// When spare memory is worth being given back.
package struct SpareMemory: Sendable {
    /// Bytes. Less is what a hub under load takes and frees all the time.
    private static let much = 16_777_216
    /// What could not be given back the last time, because it lies between what is in use.
    private var floor = 0
    private var wasMuch = false

    package init() {}

    /// - Parameter spare: in bytes, at this look.
    package mutating func isDue(spare: Int) -> Bool {
        floor = min(floor, max(0, spare))
        let isMuch = spare - floor >= Self.much
        defer { wasMuch = isMuch }
        return isMuch && wasMuch
    }

    package mutating func wasReturned(leaving spare: Int) {
        floor = max(0, spare)
        wasMuch = false
    }
}
