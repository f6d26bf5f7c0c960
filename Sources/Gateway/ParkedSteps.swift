package import Hub

/// Steps of recoveries that wait until their sockets have room.
///
/// What a member missed may be far more than its socket's cap, and a cap is for those who do not read, not for those who
/// have much to read. So a recovery goes on no faster than its socket takes it: what the feed sent on, two batches at
/// most, waits here, and the feed is told that they were taken when they were.
package struct ParkedSteps {
    package enum Item {
        case step(RecoveryID, RecoveryStep)
        case taken(@Sendable () -> Void)
    }

    private var items: [Slot: [Item]] = [:]

    package init() {}

    package func has(_ slot: Slot) -> Bool { items[slot] != nil }

    package mutating func append(_ item: Item, for slot: Slot) {
        items[slot, default: []].append(item)
    }

    /// All that waits for a slot, which is forgotten. Whoever takes it parks again what there is no room for.
    package mutating func take(_ slot: Slot) -> [Item] {
        items.removeValue(forKey: slot) ?? []
    }
}
