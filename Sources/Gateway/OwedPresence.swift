package import Hub

/// Who was spared presence frames, of which channels: each is owed one `presence_state`.
///
/// From the first frame that was left out until the state is sent, every frame of that channel is left out: a difference
/// to something that the client has not seen would mislead it.
package struct OwedPresence {
    private var channels: [Slot: [ChannelKey]] = [:]
    /// Sockets that are owed something and have nothing pending.
    package var settled: [Slot] = []

    package init() {}

    /// True if a frame of this channel is to be left out, which is remembered.
    package mutating func spare(_ slot: Slot, _ channel: ChannelKey, isBehind: Bool) -> Bool {
        if channels[slot]?.contains(channel) == true { return true }
        guard isBehind else { return false }
        channels[slot, default: []].append(channel)
        return true
    }

    package func isOwed(_ slot: Slot) -> Bool { channels[slot] != nil }

    /// One of the channels, which is owed no longer.
    package mutating func take(_ slot: Slot) -> ChannelKey? {
        let channel = channels[slot]?.popLast()
        if channels[slot]?.isEmpty == true { channels[slot] = nil }
        return channel
    }

    package mutating func forget(_ slot: Slot) {
        channels[slot] = nil
        settled.removeAll { $0 == slot }
    }
}
