import Wire

/// One channel, with this loop's members and everyone's presence.
package final class LocalChannel {
    package let key: ChannelKey
    /// The topic as JSON text, spliced into every frame.
    let topicJSON: [UInt8]
    let topicHash: Int
    /// The number of memberships on this loop, including those whose join is not answered yet.
    var memberCount = 0
    /// Members on this loop that hear the channel's broadcasts, except those with history; in a private channel they
    /// have the right to read.
    package var members = Audience()
    /// Nil if no member asked for history.
    var history: ChannelHistory?
    var presence = ChannelPresence()
    var typing = ChannelTyping()
    /// Nil unless the channel is a stream's.
    var stream: ChannelStream?
    var traffic = ChannelTraffic()
    /// Subscribers to row changes, by their subscription.
    var groups: [ChangeSubscription.Key: ChangeGroup] = [:]
    /// Replays of messages that were sent before a member joined.
    var replays = ChannelReplays()

    package init(key: ChannelKey) {
        self.key = key
        topicJSON = JSONString.encode(key.topic)
        topicHash = ChannelKey.hash(ofTopic: key.topic)
    }

    /// Nothing needs this object any more.
    package var isIdle: Bool { memberCount == 0 && presence.list.isEmpty && typing.isEmpty }

    /// Everyone who hears the channel's broadcasts.
    var listeners: Audience { history.map { Audience(joining: [members, $0.audience]) } ?? members }

    /// - Parameter isBehindPosition: whether `HubContext.fanOutFrame` sends readers of events their position first.
    func frames(_ version: ProtocolVersion, isBehindPosition: Bool = false) -> ServerFrame {
        ServerFrame(version, topic: topicJSON, isBehindPosition: isBehindPosition)
    }
}

/// The identity of a channel. A public and a private channel with the same name are two channels.
package struct ChannelKey: Hashable, Sendable {
    /// With its prefix, as clients write it: `realtime:room1`.
    package let topic: String
    package let isPrivate: Bool

    package static let prefix = "realtime:"

    package init(topic: String, isPrivate: Bool) {
        self.topic = topic
        self.isPrivate = isPrivate
    }

    /// The topic without its prefix, as SQL, HTTP and `system` messages use it.
    package var name: Substring { Substring(topic.utf8.dropFirst(Self.prefix.utf8.count)) }

    /// Topics are compared by bytes, as clients do; Swift equates strings that look alike.
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
