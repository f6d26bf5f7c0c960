import DequeModule
import Synchronization
package import Wire

/// What happens on this hub, for a backend that is told of it: who is connected, which channels have members, who is present.
///
/// One for all loops; safe from any thread, behind one lock that is held for a look-up. Whoever notes something never waits for whoever
/// takes it: beyond a bound what happens is not kept, and a `missed` with their number takes the place of those that were not.
package final class Happenings: Sendable {
    package enum Kind: String, Sendable, CaseIterable {
        case channelOccupied = "channel.occupied"
        case channelVacated = "channel.vacated"
        case memberJoined = "member.joined"
        case memberLeft = "member.left"
        case clientConnected = "client.connected"
        case clientDisconnected = "client.disconnected"
        /// So many others were not kept.
        case missed = "events.missed"
        /// The hub's process has begun: all that an earlier one said is over, also what it could not take back any more.
        case hubStarted = "hub.started"
    }

    package struct Event: Sendable, Equatable {
        package let kind: Kind
        /// In milliseconds since 1970.
        package let at: Int64
        package var channel: ChannelKey?
        /// The presence key.
        package var key: String?
        /// What a member tracks: the text of a JSON object.
        package var payload: [UInt8]?
        /// The claim `sub`.
        package var user: Name?
        /// What a socket's two events have in common, and no others do in the life of the process.
        package var client: String?
        package var count: Int?

        package init(_ kind: Kind, at: Int64) {
            self.kind = kind
            self.at = at
        }

        /// What it may take in the memory of the hub.
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
        /// Members that have joined, on all loops.
        var channels: [ChannelKey: Int] = [:]
        /// Presences of each key.
        var members: [Member: Int] = [:]
        var queue: Deque<Event> = []
        var bytes = 0
        /// Since the last one that was kept, and when the last of them happened.
        var missed = 0
        var missedAt: Int64 = 0
        var missedInAll = 0
    }

    private let state = Mutex(State())
    private let most: Int
    private let mostBytes: Int

    /// - Parameters:
    ///   - most: events that may wait.
    ///   - mostBytes: for all of them.
    package init(most: Int, mostBytes: Int = 64 << 20) {
        self.most = most
        self.mostBytes = mostBytes
    }

    // MARK: What happens

    /// To be called once, before anything else happens.
    package func started(at now: Int64) { state.withLock { keep(Event(.hubStarted, at: now), &$0) } }

    func connected(_ client: String, _ user: Name?, at now: HubTime) {
        note(.clientConnected, at: now) {
            $0.client = client
            $0.user = user
        }
    }

    func disconnected(_ client: String, _ user: Name?, at now: HubTime) {
        note(.clientDisconnected, at: now) {
            $0.client = client
            $0.user = user
        }
    }

    /// A join was answered.
    func joined(_ channel: ChannelKey, at now: HubTime) {
        state.withLock { state in
            let count = state.channels[channel, default: 0]
            state.channels[channel] = count + 1
            guard count == 0 else { return }
            var event = Event(.channelOccupied, at: now.unix)
            event.channel = channel
            keep(event, &state)
        }
    }

    /// Somebody who had joined is no member any more.
    func left(_ channel: ChannelKey, at now: HubTime) {
        state.withLock { state in
            guard let count = state.channels[channel] else { return }
            state.channels[channel] = count > 1 ? count - 1 : nil
            guard count == 1 else { return }
            var event = Event(.channelVacated, at: now.unix)
            event.channel = channel
            keep(event, &state)
        }
    }

    /// A presence is shown that was not.
    func present(_ record: PresenceRecord, at now: Int64) {
        state.withLock { state in
            let member = Member(channel: record.channel, key: Name(record.key))
            state.members[member, default: 0] += 1
            if state.members[member] == 1 { keep(Self.event(.memberJoined, record, at: now), &state) }
        }
    }

    /// One is not shown any more: its window is over, or it took its leave.
    func absent(_ record: PresenceRecord, at now: Int64) {
        state.withLock { state in
            let member = Member(channel: record.channel, key: Name(record.key))
            guard let count = state.members[member] else { return }
            state.members[member] = count > 1 ? count - 1 : nil
            if count == 1 { keep(Self.event(.memberLeft, record, at: now), &state) }
        }
    }

    private static func event(_ kind: Kind, _ record: PresenceRecord, at now: Int64) -> Event {
        var event = Event(kind, at: now)
        event.channel = record.channel
        event.key = record.key
        event.user = record.user
        event.payload = record.payload
        return event
    }

    private func note(_ kind: Kind, at now: HubTime, _ fill: (inout Event) -> Void) {
        var event = Event(kind, at: now.unix)
        fill(&event)
        state.withLock { [event] in keep(event, &$0) }
    }

    private func keep(_ event: Event, _ state: inout State) {
        guard state.queue.count < most, state.bytes + event.bytes <= mostBytes else {
            state.missed += 1
            state.missedInAll += 1
            state.missedAt = event.at
            return
        }
        noteMissed(&state)
        append(event, &state)
    }

    private func noteMissed(_ state: inout State) {
        guard state.missed > 0 else { return }
        var gap = Event(.missed, at: state.missedAt)
        gap.count = state.missed
        state.missed = 0
        append(gap, &state)
    }

    private func append(_ event: Event, _ state: inout State) {
        state.queue.append(event)
        state.bytes += event.bytes
    }

    // MARK: Taking them

    /// The oldest, in the order in which they happened; they are the caller's from here on.
    ///
    /// - Parameters:
    ///   - most: of them.
    ///   - mostBytes: of all of them, but for a single one that is larger.
    package func take(upTo most: Int, mostBytes: Int) -> [Event] {
        state.withLock { state in
            var (events, bytes): ([Event], Int) = ([], 0)
            while events.count < most, let next = state.queue.first, events.isEmpty || bytes + next.bytes <= mostBytes {
                bytes += next.bytes
                events.append(state.queue.removeFirst())
            }
            state.bytes -= bytes
            // Though nothing happens after them: whoever is told of it reads the state anew.
            if state.queue.isEmpty { noteMissed(&state) }
            return events
        }
    }

    package var waiting: Int { state.withLock { $0.queue.count } }
    /// How many were not kept.
    package var missed: Int { state.withLock { $0.missedInAll } }
}
