/// How much a channel has said on this loop.
struct ChannelTraffic {
    /// Frames, each counted once whatever the number of its protocol versions and receivers. What members with history
    /// are sent is another frame than what those without are.
    var messages = 0
    /// Frames times receivers.
    var deliveries = 0

    mutating func count(_ receivers: Int) {
        messages += 1
        deliveries += receivers
    }
}
