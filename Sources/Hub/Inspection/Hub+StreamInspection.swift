package import Streams
package import Wire

/// Views for an operator of the members that watch and write streams. They cost nothing until asked for.
extension Hub {
    /// Returns the number of members watching a stream, by WebSockets and by event streams.
    package func watcherCounts(of name: StreamName) -> (sockets: Int, readers: Int) {
        guard let watchers = channels[ChannelStream.key(name)]?.stream?.watchers else { return (0, 0) }
        let readers = watchers.values.count { $0.connection.reader != nil }
        return (watchers.count - readers, readers)
    }

    /// Returns all members watching a stream.
    ///
    /// - Parameter id: the stream's; a member that watched a different one has nothing of this one.
    package func watchers(of name: StreamName, _ id: StreamID) -> [StreamMemberView] {
        guard let watchers = channels[ChannelStream.key(name)]?.stream?.watchers else { return [] }
        return watchers.values.map { membership in
            let place = membership.streamPlace
            return StreamMemberView(
                slot: membership.slot, user: membership.claims.subject, isReader: membership.connection.reader != nil,
                offset: place?.id == id ? place?.offset ?? 0 : 0)
        }
    }

    /// Returns the members that have written the stream. They need not be watching it, so all connections are scanned.
    package func writers(of name: StreamName) -> [(slot: Slot, user: Name?)] {
        guard let channel = channels[ChannelStream.key(name)] else { return [] }
        return context.openConnections.compactMap { connection in
            guard let membership = connection.memberships[channel], membership.holdsStream else { return nil }
            return (connection.slot, membership.claims.subject)
        }
    }
}

/// A member that watches a stream.
package struct StreamMemberView: Sendable {
    package let slot: Slot
    package let user: Name?
    /// The member reads events from an HTTP response.
    package let isReader: Bool
    /// The offset in bytes up to which it was sent the stream.
    package let offset: Int
}
