/// How busy a channel is on one loop, or on all.
package struct ChannelLoad: Sendable {
    package let key: ChannelKey
    package var sockets: Int
    /// Who is present, on whichever loop.
    package var present: Int
    /// Since the look before: frames, and frames times receivers.
    package var messages: Int
    package var deliveries: Int

    private var weight: (Int, Int, Int) { (deliveries, messages, sockets) }

    /// Joins what loops say of the same channels.
    ///
    /// Every loop has members of its own. A message reaches each loop once, and all know of everybody who is present.
    package static func joined(_ loads: [ChannelLoad], limit: Int) -> [ChannelLoad] {
        var all: [ChannelKey: ChannelLoad] = [:]
        for load in loads {
            guard var known = all[load.key] else {
                all[load.key] = load
                continue
            }
            known.sockets += load.sockets
            known.deliveries += load.deliveries
            known.present = max(known.present, load.present)
            known.messages = max(known.messages, load.messages)
            all[load.key] = known
        }
        return Array(all.values.sorted { $0.weight > $1.weight }.prefix(limit))
    }

    /// Puts it in its place among the busiest ones, which are in order and at most so many.
    func enter(_ busiest: inout [ChannelLoad], limit: Int) {
        if busiest.count == limit, let last = busiest.last, last.weight >= weight { return }
        let place = busiest.firstIndex { $0.weight < weight } ?? busiest.count
        busiest.insert(self, at: place)
        if busiest.count > limit { busiest.removeLast() }
    }
}
