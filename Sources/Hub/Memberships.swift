/// What one connection has joined, in the order of the joins.
struct Memberships: RandomAccessCollection, MutableCollection {
    private var all: [Membership] = []
    /// Their `topicHash`es, side by side, once there are many: a socket in a hundred channels looks for one of them within a
    /// few cache lines instead of 25 KB. Empty while there are few, which is what nearly all sockets have.
    private var hashes: [Int] = []
    private static let few = 8

    var startIndex: Int { 0 }
    var endIndex: Int { all.count }

    subscript(position: Int) -> Membership {
        _read { yield all[position] }
        _modify { yield &all[position] }
    }

    mutating func append(_ membership: Membership) {
        all.append(membership)
        if !hashes.isEmpty {
            hashes.append(membership.topicHash)
        } else if all.count > Self.few {
            hashes = all.map(\.topicHash)
        }
    }

    mutating func remove(at position: Int) -> Membership {
        if !hashes.isEmpty { hashes.remove(at: position) }
        return all.remove(at: position)
    }

    func index(of topic: String) -> Int? {
        let hash = ChannelKey.hash(ofTopic: topic)
        guard hashes.isEmpty else {
            return hashes.indices.first { hashes[$0] == hash && all[$0].channel.key.topic.hasSameBytes(as: topic) }
        }
        return all.firstIndex { $0.topicHash == hash && $0.channel.key.topic.hasSameBytes(as: topic) }
    }

    func index(of channel: Channel) -> Int? {
        guard hashes.isEmpty else {
            return hashes.indices.first { hashes[$0] == channel.topicHash && all[$0].channel === channel }
        }
        return all.firstIndex { $0.channel === channel }
    }
}
