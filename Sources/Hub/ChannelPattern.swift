package import Wire

/// Public or private channels whose names fit a pattern.
package struct ChannelPattern: Sendable, Equatable {
    private let topic: TopicPattern
    private let isPrivate: Bool

    package init(_ topic: TopicPattern, isPrivate: Bool) {
        self.topic = topic
        self.isPrivate = isPrivate
    }

    package func matches(_ key: ChannelKey) -> Bool { key.isPrivate == isPrivate && topic.matches(key.name) }
}
