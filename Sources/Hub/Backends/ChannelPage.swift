import Wire

/// The numbers of connections, members and typing users in a channel.
package struct ChannelCount: Sendable, Equatable {
    package let key: ChannelKey
    /// Sockets and readers of events whose joins are answered or in progress; on one loop, one hub, or all of them.
    package var connections: Int
    /// Presences anywhere in the cluster: every loop and hub knows all of them.
    package var members: Int
    /// Users who are typing, anywhere in the cluster.
    package var typing: Int

    package init(key: ChannelKey, connections: Int = 0, members: Int = 0, typing: Int = 0) {
        self.key = key
        self.connections = connections
        self.members = members
        self.typing = typing
    }

    package var isEmpty: Bool { connections == 0 && members == 0 }

    /// Adds the counts of another loop or hub for the same channel.
    package mutating func mergeCount(_ other: ChannelCount) {
        connections += other.connections
        members = max(members, other.members)
        typing = max(typing, other.typing)
    }
}

/// One page of the list of channels with members, ordered by the bytes of their topics, as seen by one loop, one hub or
/// all of them.
package struct ChannelPage: Sendable, Equatable {
    package var channels: [ChannelCount] = []
    /// More channels follow the last one.
    package var isCut = false
    /// The number of channels whose topics are too long to be listed.
    package var unlisted = 0

    /// The maximum bytes of a listed topic: a cursor has to fit into a URL.
    package static let longestTopic = 1024
    /// The maximum bytes of a page's topics as JSON.
    package static let mostBytes = 1 << 18

    package init(channels: [ChannelCount] = [], isCut: Bool = false, unlisted: Int = 0) {
        self.channels = channels
        self.isCut = isCut
        self.unlisted = unlisted
    }

    /// Merges the same page from several loops or hubs.
    ///
    /// A source that has more channels behind its last one has said nothing about what follows, so the merged page ends
    /// there.
    package static func mergePages(_ pages: [ChannelPage], limit: Int) -> ChannelPage {
        let end = pages.filter(\.isCut).compactMap(\.channels.last?.key).min { ChannelKey.precedes($0, $1) }
        var all: [ChannelKey: ChannelCount] = [:]
        var isCut = pages.contains(where: \.isCut)
        for channel in pages.flatMap(\.channels) {
            if let end, ChannelKey.precedes(end, channel.key) { continue }
            if all[channel.key]?.mergeCount(channel) == nil { all[channel.key] = channel }
        }
        var sorted = all.values.sorted { ChannelKey.precedes($0.key, $1.key) }
        if sorted.count > limit {
            sorted.removeLast(sorted.count - limit)
            isCut = true
        }
        return ChannelPage(channels: sorted, isCut: isCut, unlisted: pages.reduce(0) { max($0, $1.unlisted) })
    }
}

extension ChannelKey {
    /// The order of the list of channels: by the bytes of the topic; with equal names the public channel comes first.
    package static func precedes(_ one: ChannelKey, _ other: ChannelKey) -> Bool {
        let order = order(of: one.topic, other.topic)
        return order < 0 || order == 0 && !one.isPrivate && other.isPrivate
    }

    /// Returns a negative number if the first topic comes first. Compares bytes in place: with the library's iterators
    /// a page of a hundred thousand channels takes three times as long.
    private static func order(of one: String, _ other: String) -> Int {
        let order = one.utf8.withContiguousStorageIfAvailable { one in
            other.utf8.withContiguousStorageIfAvailable { other in
                for at in 0..<min(one.count, other.count) where one[at] != other[at] {
                    return one[at] < other[at] ? -1 : 1
                }
                return one.count - other.count
            }
        }
        if let order, let order { return order }
        if one.utf8.elementsEqual(other.utf8) { return 0 }
        return one.utf8.lexicographicallyPrecedes(other.utf8) ? -1 : 1
    }
}

extension Hub {
    /// Returns a page of this loop's channels that have members.
    ///
    /// - Parameters:
    ///   - prefix: the beginning of the topics, including the topics' own prefix.
    ///   - after: the last channel of the previous page; nil for the first page.
    package func channelPage(prefix: String, after: ChannelKey?, limit: Int) -> ChannelPage {
        var page = ChannelPage()
        var first = FirstInOrder<LocalChannel>(limit) { ChannelKey.precedes($0.key, $1.key) }
        // All topics start with their own prefix.
        let isAny = prefix == ChannelKey.prefix
        for channel in channels.values {
            guard channel.memberCount > 0 || !channel.presence.list.isEmpty,
                isAny || channel.key.topic.utf8.starts(with: prefix.utf8)
            else { continue }
            guard channel.key.topic.utf8.count <= ChannelPage.longestTopic else {
                page.unlisted += 1
                continue
            }
            if let after, !ChannelKey.precedes(after, channel.key) { continue }
            first.offer(channel)
        }
        page.isCut = first.isCut
        var bytes = 0
        for channel in first.elements {
            bytes += JSONString.encodedCount(channel.key.topic)
            guard bytes <= ChannelPage.mostBytes || page.channels.isEmpty else {
                page.isCut = true
                break
            }
            page.channels.append(count(of: channel))
        }
        return page
    }

    package func count(of key: ChannelKey) -> ChannelCount {
        channels[key].map { count(of: $0) } ?? ChannelCount(key: key)
    }

    private func count(of channel: LocalChannel) -> ChannelCount {
        ChannelCount(
            key: channel.key, connections: channel.memberCount, members: channel.presence.list.count,
            typing: channel.typing.count)
    }
}
