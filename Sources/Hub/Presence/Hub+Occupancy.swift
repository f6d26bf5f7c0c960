import Wire

/// How many are present, for members that want no list of them (`config.presence.occupancy`).
///
/// A broadcast by its form, because that is what every client can listen to:
/// `{"event":"presence_occupancy","payload":{"members":…,"keys":…},"type":"broadcast"}`.
extension Hub {
    /// Sends the count, and from here on every new one.
    func showOccupancy(to membership: Membership) {
        let channel = membership.channel
        membership.counterSeat = channel.counters.add(membership.slot, membership.version)
        let frame = membership.frames.push("broadcast", payload: [Self.occupancy(of: channel)[...]])
        actions.append(.send(frame, to: membership.slot))
    }

    func occupancyChanged(in channel: Channel) {
        guard !channel.counters.isEmpty else { return }
        let next = channel.occupancyToldAt + presenceRules.occupancyInterval
        if latest.monotonic < next {
            context.schedule(.occupancy(channel.key), at: next)
        } else {
            tellOccupancy(of: channel)
        }
    }

    func tellOccupancy(of channel: Channel) {
        guard !channel.counters.isEmpty else { return }
        let payload = Self.occupancy(of: channel)
        guard payload != channel.occupancyTold else { return }
        channel.occupancyTold = payload
        channel.occupancyToldAt = latest.monotonic
        context.fanOut("broadcast", [payload[...]], in: channel, to: channel.counters)
    }

    private static func occupancy(of channel: Channel) -> [UInt8] {
        let count = "{\"members\":\(channel.presence.count),\"keys\":\(channel.presence.keyCount)}"
        return Array("{\"event\":\"presence_occupancy\",\"payload\":\(count),\"type\":\"broadcast\"}".utf8)
    }
}
