import Wire

/// Counting what channels say: two additions for each message, and a look into it only while an operator asks.
extension Hub {
    /// - Parameter receivers: without the sender, where it wants no echo.
    func count(_ event: StaticString, _ payload: [ArraySlice<UInt8>], in channel: Channel, receivers: Int) {
        channel.traffic.count(receivers)
        guard let tap = tap(of: channel) else { return }
        let bytes = Array(payload.joined())
        tap.note(
            event.description, at: latest.unix, receivers: receivers, bytes: bytes.count,
            Excerpt.of(JSON(trusted: bytes[...])))
    }

    func count(_ message: Broadcast, in channel: Channel, receivers: Int) {
        channel.traffic.count(receivers)
        guard let tap = tap(of: channel) else { return }
        let (bytes, excerpt) =
            switch message {
            case .text(let payload): (payload.count, Excerpt.of(JSON(trusted: payload[...])))
            case .user(let user): (user.payload.count, "\(user.event): \(user.excerpt)")
            }
        tap.note("broadcast", at: latest.unix, receivers: receivers, bytes: bytes, excerpt)
    }

    /// Nil where nobody looks, or nobody does any more.
    private func tap(of channel: Channel) -> ChannelTap? {
        guard let tap = channel.tap else { return nil }
        if latest.monotonic < tap.until { return tap }
        channel.tap = nil
        return nil
    }
}

extension UserBroadcast {
    fileprivate var excerpt: String {
        encoding == .json ? FrameHead.excerpt(ofJSON: payload) : "\(payload.count) bytes"
    }
}
