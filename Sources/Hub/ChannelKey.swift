import Wire

/// The identity of a channel. A public and a private channel of one name are two rooms.
package struct ChannelKey: Hashable, Sendable {
    /// With its prefix, as clients write it: `realtime:room1`.
    package let topic: String
    package let isPrivate: Bool

    package static let prefix = "realtime:"

    package init(topic: String, isPrivate: Bool) {
        self.topic = topic
        self.isPrivate = isPrivate
    }

    /// The topic without its prefix, as SQL, HTTP and `system` messages name it.
    package var name: Substring { Substring(topic.utf8.dropFirst(Self.prefix.utf8.count)) }

    /// Topics are told apart by their bytes, as clients do it; to Swift strings that look alike are equal.
    package static func == (one: ChannelKey, other: ChannelKey) -> Bool {
        one.isPrivate == other.isPrivate && one.topic.hasSameBytes(as: other.topic)
    }

    /// The same for equal topics within a process, private or not.
    static func hash(ofTopic topic: String) -> Int {
        var hasher = Hasher()
        var topic = topic
        topic.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        return hasher.finalize()
    }

    package func hash(into hasher: inout Hasher) {
        var topic = topic
        topic.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(isPrivate)
    }
}
