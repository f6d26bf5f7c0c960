package import Streams
package import Wire

/// What an operator asks to see of those who watch and write streams in their channels. It costs nothing until then.
extension Hub {
    /// How many members of a stream's channel are told what comes, by WebSockets and by event streams.
    package func watcherCounts(of name: StreamName) -> (sockets: Int, readers: Int) {
        guard let watchers = channels[ChannelStream.key(name)]?.stream?.watchers else { return (0, 0) }
        let readers = watchers.values.count { $0.connection.reader != nil }
        return (watchers.count - readers, readers)
    }

    /// All members of a stream's channel who are told what comes.
    ///
    /// - Parameter id: of the stream; whoever was told of another one has nothing of this one.
    package func watchers(of name: StreamName, _ id: StreamID) -> [StreamMemberView] {
        guard let watchers = channels[ChannelStream.key(name)]?.stream?.watchers else { return [] }
        return watchers.values.map { membership in
            let place = membership.streamPlace
            return StreamMemberView(
                slot: membership.slot, user: membership.claims.subject, isReader: membership.connection.reader != nil,
                offset: place?.id == id ? place?.offset ?? 0 : 0)
        }
    }

    /// The members of a stream's channel who have written it. They need not be told what comes, so all connections are looked at.
    package func writers(of name: StreamName) -> [(slot: Slot, user: Name?)] {
        guard let channel = channels[ChannelStream.key(name)] else { return [] }
        return context.openConnections.compactMap { connection in
            guard let membership = connection.memberships[channel], membership.holdsStream else { return nil }
            return (connection.slot, membership.claims.subject)
        }
    }
}

/// A member of a stream's channel who is told what comes.
package struct StreamMemberView: Sendable {
    package let slot: Slot
    package let user: Name?
    /// It reads events from an HTTP answer.
    package let isReader: Bool
    /// Up to where it was sent the stream, in bytes.
    package let offset: Int
}
