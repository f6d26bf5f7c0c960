import Wire

/// One channel, as far as this loop's connections and everybody's presence go.
package final class LocalChannel {
    package let key: ChannelKey
    /// The topic as JSON text, spliced into every frame.
    let topicJSON: [UInt8]
    let topicHash: Int
    /// Memberships on this loop, those whose join is not answered yet included.
    var memberCount = 0
    /// Who hears the channel's broadcasts: everybody who joined on this loop, and in a private channel may.
    package var members = Audience()
    /// Where one of them asked for it.
    var history: ChannelHistory?
    var presence = ChannelPresence()
    var typing = ChannelTyping()
    /// Where it is a stream's.
    var stream: ChannelStream?
    var traffic = ChannelTraffic()
    /// Those who asked for row changes, by what they asked for.
    var groups: [ChangeSubscription.Key: ChangeGroup] = [:]
    /// Of messages that were sent before a member joined.
    var replays = ChannelReplays()

    package init(key: ChannelKey) {
        self.key = key
        topicJSON = JSONString.encode(key.topic)
        topicHash = ChannelKey.hash(ofTopic: key.topic)
    }

    /// Nothing is left that would need this object.
    package var isIdle: Bool { memberCount == 0 && presence.list.isEmpty && typing.isEmpty }

    /// Everybody who hears the channel's broadcasts.
    var listeners: Audience { history.map { Audience(joining: [members, $0.audience]) } ?? members }

    /// - Parameter isBehindPosition: to readers of events, `HubContext.pass` sends where they are before it.
    func frames(_ version: ProtocolVersion, isBehindPosition: Bool = false) -> ServerFrame {
        ServerFrame(version, topic: topicJSON, isBehindPosition: isBehindPosition)
    }
}

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
