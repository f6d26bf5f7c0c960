/// A socket and when something is to be done with it.
struct TimedSlot: Comparable {
    let due: UInt64
    let slot: Int

    static func < (one: TimedSlot, other: TimedSlot) -> Bool { (one.due, one.slot) < (other.due, other.slot) }
}
