import DequeModule
import Synchronization
package import Wire

/// Events on this hub for a backend that subscribes to them: connections, channels with members, presence.
///
/// Shared by all loops; safe from any thread, behind one lock that is held for a look-up. Recording never waits for the
/// consumer: beyond a limit, events are dropped and replaced by one `missed` with their number.
package final class Happenings: Sendable {
    package enum Kind: String, Sendable, CaseIterable {
        case channelOccupied = "channel.occupied"
        case channelVacated = "channel.vacated"
        case memberJoined = "member.joined"
        case memberLeft = "member.left"
        case clientConnected = "client.connected"
        case clientDisconnected = "client.disconnected"
        /// A number of events were dropped.
        case missed = "events.missed"
        /// The hub's process has started: everything an earlier process reported is over, even if it never reported the
        /// end.
        case hubStarted = "hub.started"
    }

    package struct Event: Sendable, Equatable {
        package let kind: Kind
        /// Milliseconds since 1970.
        package let at: Int64
        package var channel: ChannelKey?
        /// The presence key.
        package var key: String?
        /// The member's tracked payload: a JSON object as text.
        package var payload: [UInt8]?
        /// The claim `sub`.
        package var user: Name?
        /// Pairs the two events of one socket; unique within the process' lifetime.
        package var client: String?
        package var count: Int?

        package init(_ kind: Kind, at: Int64) {
            self.kind = kind
            self.at = at
        }

        /// An estimate of the memory the event takes.
        var bytes: Int {
            200 + (channel?.topic.utf8.count ?? 0) + (key?.utf8.count ?? 0) + (payload?.count ?? 0)
                + (user?.utf8.count ?? 0)
        }
    }

    private struct Member: Hashable {
        let channel: ChannelKey
        let key: Name
    }

    private struct State {
        /// The number of joined members of each channel, on all loops.
        var channels: [ChannelKey: Int] = [:]
        /// The number of presences with each key.
        var members: [Member: Int] = [:]
        var queue: Deque<Event> = []
        var bytes = 0
        /// The number of events dropped since the last one kept, and the time of the last of them.
        var missed = 0
        var missedAt: Int64 = 0
        var missedInAll = 0
    }

    private let state = Mutex(State())
    private let most: Int
    private let mostBytes: Int

    /// - Parameters:
    ///   - most: the maximum number of waiting events.
    ///   - mostBytes: the maximum bytes of all of them.
    package init(most: Int, mostBytes: Int = 64 << 20) {
        self.most = most
        self.mostBytes = mostBytes
    }

    // MARK: Recording events

    /// Records the start of the hub. Call once, before anything else is recorded.
    package func hubStarted(at now: Int64) { state.withLock { queueEvent(Event(.hubStarted, at: now), &$0) } }

    func clientConnected(_ client: String, _ user: Name?, at now: HubTime) {
        recordEvent(.clientConnected, at: now) {
            $0.client = client
            $0.user = user
        }
    }

    func clientDisconnected(_ client: String, _ user: Name?, at now: HubTime) {
        recordEvent(.clientDisconnected, at: now) {
            $0.client = client
            $0.user = user
        }
    }

    /// Records an answered join.
    func channelJoined(_ channel: ChannelKey, at now: HubTime) {
        state.withLock { state in
            let count = state.channels[channel, default: 0]
            state.channels[channel] = count + 1
            guard count == 0 else { return }
            var event = Event(.channelOccupied, at: now.unix)
            event.channel = channel
            queueEvent(event, &state)
        }
    }

    /// Records that a joined member has left.
    func channelLeft(_ channel: ChannelKey, at now: HubTime) {
        state.withLock { state in
            guard let count = state.channels[channel] else { return }
            state.channels[channel] = count > 1 ? count - 1 : nil
            guard count == 1 else { return }
            var event = Event(.channelVacated, at: now.unix)
            event.channel = channel
            queueEvent(event, &state)
        }
    }

    /// Records a presence that has appeared.
    func presenceAppeared(_ record: PresenceRecord, at now: Int64) {
        state.withLock { state in
            let member = Member(channel: record.channel, key: Name(record.key))
            state.members[member, default: 0] += 1
            if state.members[member] == 1 { queueEvent(Self.makeEvent(.memberJoined, record, at: now), &state) }
        }
    }

    /// Records a presence that has disappeared: its window is over, or the member withdrew it.
    func presenceDisappeared(_ record: PresenceRecord, at now: Int64) {
        state.withLock { state in
            let member = Member(channel: record.channel, key: Name(record.key))
            guard let count = state.members[member] else { return }
            state.members[member] = count > 1 ? count - 1 : nil
            if count == 1 { queueEvent(Self.makeEvent(.memberLeft, record, at: now), &state) }
        }
    }

    private static func makeEvent(_ kind: Kind, _ record: PresenceRecord, at now: Int64) -> Event {
        var event = Event(kind, at: now)
        event.channel = record.channel
        event.key = record.key
        event.user = record.user
        event.payload = record.payload
        return event
    }

    private func recordEvent(_ kind: Kind, at now: HubTime, _ fill: (inout Event) -> Void) {
        var event = Event(kind, at: now.unix)
        fill(&event)
        state.withLock { [event] in queueEvent(event, &$0) }
    }

    private func queueEvent(_ event: Event, _ state: inout State) {
        guard state.queue.count < most, state.bytes + event.bytes <= mostBytes else {
            state.missed += 1
            state.missedInAll += 1
            state.missedAt = event.at
            return
        }
        noteMissed(&state)
        appendEvent(event, &state)
    }

    private func noteMissed(_ state: inout State) {
        guard state.missed > 0 else { return }
        var gap = Event(.missed, at: state.missedAt)
        gap.count = state.missed
        state.missed = 0
        appendEvent(gap, &state)
    }

    private func appendEvent(_ event: Event, _ state: inout State) {
        state.queue.append(event)
        state.bytes += event.bytes
    }

    // MARK: Taking events

    /// Removes and returns the oldest events, in the order in which they happened.
    ///
    /// - Parameters:
    ///   - most: the maximum number.
    ///   - mostBytes: the maximum bytes of all of them, except for a single event that is larger.
    package func takeEvents(upTo most: Int, mostBytes: Int) -> [Event] {
        state.withLock { state in
            var (events, bytes): ([Event], Int) = ([], 0)
            while events.count < most, let next = state.queue.first, events.isEmpty || bytes + next.bytes <= mostBytes {
                bytes += next.bytes
                events.append(state.queue.removeFirst())
            }
            state.bytes -= bytes
            // Reported even if no event follows, so that the backend reads the state again.
            if state.queue.isEmpty { noteMissed(&state) }
            return events
        }
    }

    package var waiting: Int { state.withLock { $0.queue.count } }
    /// The total number of dropped events.
    package var missed: Int { state.withLock { $0.missedInAll } }
}
