package import Wire

/// Views for an operator. They cost nothing until asked for.
extension Hub {
    /// Returns the busiest channels since the last call.
    package func busiestChannels(limit: Int) -> [ChannelLoad] {
        var busiest: [ChannelLoad] = []
        for channel in channels.values {
            let new = channel.traffic.takeNew()
            let load = ChannelLoad(
                key: channel.key, sockets: channel.memberCount, present: channel.presence.list.count,
                messages: new.messages, deliveries: new.deliveries)
            load.insertInto(&busiest, limit: limit)
        }
        return busiest
    }

    /// Returns the public and the private channel of this topic, and records their events for a while from now on.
    package func channels(named topic: String, limit: Int) -> [ChannelView] {
        [false, true].compactMap { isPrivate in
            guard let channel = channels[ChannelKey(topic: topic, isPrivate: isPrivate)] else { return nil }
            return view(of: channel, events: channel.traffic.observeEvents(at: context.now), limit: limit)
        }
    }

    private func view(of channel: LocalChannel, events: [TrafficEvent], limit: Int) -> ChannelView {
        let slots = channel.listeners.slots
        return ChannelView(
            key: channel.key, sockets: channel.memberCount,
            members: slots.prefix(limit).compactMap { member(of: channel, $0) },
            presentCount: channel.presence.list.count,
            present: channel.presence.list.first(limit).map {
                ChannelView.Present(
                    key: Excerpt.redacted($0.key),
                    excerpt: $0.isListed ? Excerpt.makeText(JSON(trusted: $0.payload[...])) : "")
            },
            typing: channel.typing.count, events: events)
    }

    private func member(of channel: LocalChannel, _ slot: Slot) -> ChannelView.Member? {
        guard let membership = connection(slot)?.memberships[channel] else { return nil }
        return ChannelView.Member(
            slot: slot, user: membership.claims.subject, role: membership.claims.role,
            presenceKey: Excerpt.redacted(membership.presence.key),
            isPresent: channel.presence.list[membership.presence.id] != nil,
            changes: membership.group?.subscription.bindings.count ?? 0)
    }

    /// Nil if the slot has no connection.
    package func connection(at slot: Slot) -> ConnectionView? {
        guard let connection = connection(slot) else { return nil }
        return ConnectionView(
            version: connection.version, user: connection.subject, role: connection.claims.role,
            appState: connection.appState,
            memberships: connection.memberships.map { membership in
                ConnectionView.Membership(
                    key: membership.channel.key, isJoined: membership.join.isJoined, user: membership.claims.subject,
                    presenceKey: Excerpt.redacted(membership.presence.key),
                    isPresent: membership.channel.presence.list[membership.presence.id] != nil,
                    changes: membership.group?.subscription.bindings.count ?? 0)
            })
    }

    /// Returns the connections that a user opened or joined a channel with, by the claim `sub`.
    package func slots(ofUser user: Name) -> [Slot] {
        context.connections.compactMap { connection in
            guard let connection else { return nil }
            let isTheirs =
                connection.claims.subject == user || connection.memberships.contains { $0.claims.subject == user }
            return isTheirs ? connection.slot : nil
        }
    }
}

/// The load of a channel, on one loop or on all.
package struct ChannelLoad: Sendable {
    package let key: ChannelKey
    package var sockets: Int
    /// The number of presences, on any loop.
    package var present: Int
    /// Since the previous look: frames, and frames times receivers.
    package var messages: Int
    package var deliveries: Int

    private var weight: (Int, Int, Int) { (deliveries, messages, sockets) }

    /// Merges the loads of the same channels on several loops.
    ///
    /// Each loop has members of its own. A message reaches every loop once, and every loop knows all presences.
    package static func mergeLoads(_ loads: [ChannelLoad], limit: Int) -> [ChannelLoad] {
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

    /// Inserts the load into a sorted list of the busiest channels, which is kept within the limit.
    func insertInto(_ busiest: inout [ChannelLoad], limit: Int) {
        if busiest.count == limit, let last = busiest.last, last.weight >= weight { return }
        let place = busiest.firstIndex { $0.weight < weight } ?? busiest.count
        busiest.insert(self, at: place)
        if busiest.count > limit { busiest.removeLast() }
    }
}

/// A channel as one loop sees it, for an operator.
package struct ChannelView: Sendable {
    package struct Member: Sendable {
        package let slot: Slot
        package let user: Name?
        package let role: Name
        package let presenceKey: String
        package let isPresent: Bool
        /// The number of `postgres_changes` entries.
        package let changes: Int
    }

    package struct Present: Sendable {
        package let key: String
        package let excerpt: String
    }

    package let key: ChannelKey
    package let sockets: Int
    /// The first members, up to the limit.
    package let members: [Member]
    package let presentCount: Int
    /// The first presences, up to the limit.
    package let present: [Present]
    package let typing: Int
    /// Events since an operator began to watch.
    package let events: [TrafficEvent]
}

/// A connection as the hub sees it, for an operator.
package struct ConnectionView: Sendable {
    package struct Membership: Sendable {
        package let key: ChannelKey
        /// The join is answered.
        package let isJoined: Bool
        package let user: Name?
        package let presenceKey: String
        package let isPresent: Bool
        /// The number of `postgres_changes` entries.
        package let changes: Int
    }

    package let version: ProtocolVersion
    /// From the token at the door, or else from the first join that names a user.
    package let user: Name?
    package let role: Name
    package let appState: ReportedAppState?
    package let memberships: [Membership]
}
