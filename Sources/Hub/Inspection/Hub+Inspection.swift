package import Wire

/// What an operator asks to see. It costs nothing until then.
extension Hub {
    /// The busiest channels since this was asked last.
    package func busiestChannels(limit: Int) -> [ChannelLoad] {
        var busiest: [ChannelLoad] = []
        for channel in channels.values {
            let new = channel.traffic.takeNew()
            let load = ChannelLoad(
                key: channel.key, sockets: channel.memberCount, present: channel.presence.list.count,
                messages: new.messages, deliveries: new.deliveries)
            load.enter(&busiest, limit: limit)
        }
        return busiest
    }

    /// The rooms of this topic, the public and the private one; from here on and for a while their events are noted.
    package func channels(named topic: String, limit: Int) -> [ChannelView] {
        [false, true].compactMap { isPrivate in
            guard let channel = channels[ChannelKey(topic: topic, isPrivate: isPrivate)] else { return nil }
            return view(of: channel, events: channel.traffic.observe(at: context.now), limit: limit)
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
                    excerpt: $0.isListed ? Excerpt.of(JSON(trusted: $0.payload[...])) : "")
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

    /// Nil where nobody is connected.
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

    /// The connections that a user opened or joined a channel with, by the claim `sub`.
    package func slots(ofUser user: Name) -> [Slot] {
        context.connections.compactMap { connection in
            guard let connection else { return nil }
            let isTheirs =
                connection.claims.subject == user || connection.memberships.contains { $0.claims.subject == user }
            return isTheirs ? connection.slot : nil
        }
    }
}

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
        package let user: Name?
        package let role: Name
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
    package let events: [TrafficEvent]
}

/// A connection as the hub has it, for an operator to look at.
package struct ConnectionView: Sendable {
    package struct Membership: Sendable {
        package let key: ChannelKey
        /// Its join is answered.
        package let isJoined: Bool
        package let user: Name?
        package let presenceKey: String
        package let isPresent: Bool
        /// Entries of `postgres_changes`.
        package let changes: Int
    }

    package let version: ProtocolVersion
    /// By the token at the door, or else by the first join that names one.
    package let user: Name?
    package let role: Name
    package let appState: ReportedAppState?
    package let memberships: [Membership]
}
