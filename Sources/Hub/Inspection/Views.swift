package import Wire

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

/// A channel as one loop has it, for an operator to look at.
package struct ChannelView: Sendable {
    package struct Member: Sendable {
        package let slot: Slot
        package let user: String?
        package let role: String
        package let presenceKey: String
        package let isPresent: Bool
        /// Entries of `postgres_changes`.
        package let changes: Int
    }

    package struct Present: Sendable {
        package let key: String
        package let excerpt: String
    }

    package let key: ChannelKey
    package let sockets: Int
    /// The first of them.
    package let members: [Member]
    package let presentCount: Int
    /// The first of them.
    package let present: [Present]
    package let typing: Int
    /// From when somebody began to look.
    package let events: [ChannelEvent]
}

/// A connection as the hub has it, for an operator to look at.
package struct ConnectionView: Sendable {
    package struct Membership: Sendable {
        package let key: ChannelKey
        /// Its join is answered.
        package let isJoined: Bool
        package let user: String?
        package let presenceKey: String
        package let isPresent: Bool
        /// Entries of `postgres_changes`.
        package let changes: Int
    }

    package let version: ProtocolVersion
    /// By the token at the door, or else by the first join that names one.
    package let user: String?
    package let role: String
    package let appState: AppState?
    package let memberships: [Membership]
}
