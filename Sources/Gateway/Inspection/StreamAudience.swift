import Hub
package import Streams
package import Wire

/// The transport by which a client reads a stream.
package enum StreamTransport: String, Sendable, CaseIterable {
    case webSocket = "websocket"
    /// Event streams of either API: `live=sse`, `live=events`, and subscriptions without a WebSocket.
    case events = "sse"
    case longPoll = "long_poll"
}

/// The readers and writers of one stream.
package struct StreamAudience: Sendable {
    /// Counts all, not only those listed.
    package var counts: [StreamTransport: Int] = [:]
    /// The lowest offset of any reader, in bytes; nil if there are none.
    package var slowest: Int?
    /// Some of the readers, slowest first.
    package var watchers: [Watcher] = []
    package var writers: [Writer] = []

    package struct Watcher: Sendable {
        package let transport: StreamTransport
        /// Nil for requests, which the operator's page does not show as connections.
        package let connection: ConnectionID?
        package let user: Name?
        package let address: String?
        /// The end of what was sent to it, in bytes.
        package let offset: Int
        /// Bytes that wait for its socket to take them.
        package let pendingBytes: Int
    }

    /// A connection that appends to the stream.
    package struct Writer: Sendable {
        /// Nil for a long request.
        package let connection: ConnectionID?
        package let user: Name?
    }

    package init() {}

    mutating func add(_ other: StreamAudience) {
        counts.merge(other.counts, uniquingKeysWith: +)
        if let theirs = other.slowest { slowest = min(slowest ?? .max, theirs) }
        watchers += other.watchers
        writers += other.writers
    }

    /// Shortens both lists to this limit.
    mutating func cut(to limit: Int) {
        // Sorts equal offsets by name, so that rows keep their places from one refresh to the next.
        watchers.sort { ($0.offset, $0.user ?? "", $0.address ?? "") < ($1.offset, $1.user ?? "", $1.address ?? "") }
        watchers = Array(watchers.prefix(limit))
        writers = Array(writers.prefix(limit))
    }
}

extension Gateway {
    /// Counts the readers of some streams, by transport.
    package func watcherCounts(
        of streams: [StreamSnapshot], then reply: @escaping @Sendable ([StreamID: [StreamTransport: Int]]) -> Void
    ) {
        survey({ loop in streams.map { ($0.id, loop.watcherCounts(of: $0)) } }) { parts in
            var counts: [StreamID: [StreamTransport: Int]] = [:]
            for (id, of) in parts.joined() { counts[id, default: [:]].merge(of, uniquingKeysWith: +) }
            reply(counts)
        }
    }

    /// The readers and writers of a stream, up to `limit` of each.
    package func audience(
        of stream: StreamSnapshot, limit: Int, then reply: @escaping @Sendable (StreamAudience) -> Void
    ) {
        survey({ $0.audience(of: stream, limit: limit) }) { parts in
            var all = StreamAudience()
            for part in parts { all.add(part) }
            all.cut(to: limit)
            reply(all)
        }
    }
}

extension EventLoop {
    func watcherCounts(of stream: StreamSnapshot) -> [StreamTransport: Int] {
        let members = hub.watcherCounts(of: stream.name)
        return [
            .webSocket: members.sockets, .events: router.streams.readers.count(of: stream.id) + members.readers,
            .longPoll: router.streams.polled[stream.id]?.count ?? 0,
        ]
    }

    func audience(of stream: StreamSnapshot, limit: Int) -> StreamAudience {
        // Only some of thousands are listed, so only an offset is copied for each.
        var all: [Candidate] = hub.watchers(of: stream.name, stream.id).map { member in
            Candidate(
                transport: member.isReader ? .events : .webSocket, slot: member.slot, isMember: true, user: member.user,
                offset: member.offset)
        }
        for (slot, reader) in router.streams.readers.all(of: stream.id) {
            all.append(
                Candidate(transport: .events, slot: slot, isMember: false, user: reader.user, offset: reader.offset))
        }
        for poll in router.streams.longPolls(of: stream.id) {
            all.append(
                Candidate(transport: .longPoll, slot: nil, isMember: false, user: poll.user, offset: poll.offset))
        }
        var audience = StreamAudience()
        for candidate in all { audience.counts[candidate.transport, default: 0] += 1 }
        all.sort { $0.offset < $1.offset }
        audience.slowest = all.first?.offset
        audience.watchers = all.prefix(limit).map(watcher)
        let members = hub.writers(of: stream.name).map {
            StreamAudience.Writer(connection: id(of: $0.slot), user: $0.user)
        }
        let requests = router.streams.uploads.users(of: stream.name).map {
            StreamAudience.Writer(connection: nil, user: $0)
        }
        audience.writers = Array((members + requests).prefix(limit))
        return audience
    }

    private struct Candidate {
        let transport: StreamTransport
        /// Nil if a reader has none while it waits.
        let slot: Slot?
        /// The hub knows the slot, so the page shows it as a connection.
        let isMember: Bool
        let user: Name?
        let offset: Int
    }

    private func watcher(_ candidate: Candidate) -> StreamAudience.Watcher {
        StreamAudience.Watcher(
            transport: candidate.transport, connection: candidate.isMember ? candidate.slot.map { id(of: $0) } : nil,
            user: candidate.user, address: candidate.slot.flatMap { delivery.accounts[Int($0)].peer?.text },
            offset: candidate.offset, pendingBytes: candidate.slot.map { delivery.pending.bytes($0) } ?? 0)
    }
}

/// A loop's readers of streams, for the metrics.
extension EventLoop {
    var watchersByTransport: [StreamTransport: Int] {
        let members = hub.counters.streamWatchers
        return [
            .webSocket: members.sockets, .events: router.streams.readers.count + members.readers,
            .longPoll: router.streams.polls.count,
        ]
    }
}
