import Wire

/// One channel, as far as this loop's connections and everybody's presence go.
final class Channel {
    let key: ChannelKey
    /// The topic as JSON text, spliced into every frame.
    let topicJSON: [UInt8]
    /// Everybody who joined on this loop.
    var members = Audience()
    /// Those of them who asked for presence.
    var watchers = Audience()
    var presence = Presence()
    /// Those of them who asked for row changes, by what they asked for.
    var groups: [ChangeGroup] = []

    init(key: ChannelKey) {
        self.key = key
        topicJSON = JSONString.encode(key.topic)
    }

    /// Nothing is left that would need this object.
    var isIdle: Bool { members.isEmpty && presence.isEmpty && groups.isEmpty }

    func frames(_ version: ProtocolVersion) -> ServerFrame {
        ServerFrame(version, topic: topicJSON)
    }
}
