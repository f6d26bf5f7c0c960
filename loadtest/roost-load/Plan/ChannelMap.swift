/// Which socket is in which channels: socket g in `k` of them, from channel g × k on.
struct ChannelMap: Sendable {
    let sockets: Int
    let channels: Int
    let perSocket: Int

    init(_ plan: LoadPlan) {
        sockets = plan.sockets
        channels = plan.channels
        perSocket = min(plan.channelsPerSocket, plan.channels)
    }

    func channel(_ index: Int, ofSocket number: Int) -> Int { (number * perSocket + index) % channels }

    /// Which of the socket's channels it is; nil if it is in none of them.
    @inline(__always)
    func index(ofChannel channel: Int, onSocket number: Int) -> Int? {
        let distance = channel - number * perSocket % channels
        let index = distance < 0 ? distance + channels : distance
        return channel < channels && index < perSocket ? index : nil
    }
}
