/// What one connection has joined, in the order of the joins.
struct Memberships: RandomAccessCollection {
    private var all: [Membership] = []
    /// Their `topicHash`es, side by side, once there are many: a socket in a hundred channels looks for one of them within a
    /// few cache lines instead of 25 KB. Empty while there are few, which is what nearly all sockets have.
    private var hashes: [Int] = []
    private static let few = 8

    var startIndex: Int { 0 }
    var endIndex: Int { all.count }

    subscript(position: Int) -> Membership { all[position] }

    mutating func append(_ membership: Membership) {
        all.append(membership)
        if !hashes.isEmpty {
            hashes.append(membership.topicHash)
        } else if all.count > Self.few {
            hashes = all.map(\.topicHash)
        }
    }

    /// - Returns: whether it was among them.
    mutating func remove(_ membership: Membership) -> Bool {
        guard let position = position(of: membership.topicHash, where: { $0 === membership }) else { return false }
        if !hashes.isEmpty { hashes.remove(at: position) }
        all.remove(at: position)
        return true
    }

    subscript(topic: String) -> Membership? {
        position(of: ChannelKey.hash(ofTopic: topic)) { $0.channel.key.topic.hasSameBytes(as: topic) }.map { all[$0] }
    }

    subscript(channel: Channel) -> Membership? {
        position(of: channel.topicHash) { $0.channel === channel }.map { all[$0] }
    }

    private func position(of hash: Int, where isMeant: (Membership) -> Bool) -> Int? {
        guard hashes.isEmpty else { return hashes.indices.first { hashes[$0] == hash && isMeant(all[$0]) } }
        return all.firstIndex { $0.topicHash == hash && isMeant($0) }
    }
}
