import DequeModule

/// All channels of a history book, and the sums over them.
struct KeptChannels {
    var limits: HubLimits
    var channels: [ChannelKey: KeptChannel] = [:]
    private(set) var bytes = 0
    private(set) var count = 0
    /// All messages, oldest first, and some that are gone.
    var order: Deque<(channel: ChannelKey, history: UInt64, position: Int)> = []
    /// Milliseconds, monotonic.
    var nextSweep = Int64.min

    init(limits: HubLimits) {
        self.limits = limits
    }

    /// Changes a channel in place and keeps the sums.
    mutating func update<Result>(_ key: ChannelKey, _ body: (inout KeptChannel) -> Result) -> Result? {
        guard let index = channels.index(forKey: key) else { return nil }
        let (bytesBefore, countBefore) = (channels.values[index].bytes, channels.values[index].messages.count)
        let result = body(&channels.values[index])
        bytes += channels.values[index].bytes - bytesBefore
        count += channels.values[index].messages.count - countBefore
        return result
    }

    /// Drops the oldest messages of all channels while they are too large together.
    mutating func makeRoom(_ most: Int) {
        while bytes > most, let oldest = order.first {
            let isDropped = update(oldest.channel) { channel in
                guard channel.history == oldest.history, channel.first == oldest.position else { return true }
                return channel.dropFirst()
            }
            // A loop still has to pass it on, so its memory would not be freed.
            if isDropped == false { break }
            order.removeFirst()
        }
        guard order.count > 2 * count + 1024 else { return }
        order.removeAll { entry in
            guard let channel = channels[entry.channel], channel.history == entry.history else { return true }
            return entry.position < channel.first
        }
    }
}
