import Wire

/// The state of a Live Activity on its way to the app by its socket: a broadcast of the event `summary` in the channel
/// `live-activity:ID`.
package struct ActivitySummary: Sendable {
    /// With its prefix.
    package let topic: String
    /// The claim `sub` of whoever registered the activity; nobody else is told.
    package let user: String
    /// The payload of a `broadcast` event.
    package let message: [UInt8]

    private static let topicPrefix = ChannelKey.prefix + "live-activity:"

    /// Nil where the topic is not an activity's.
    static func activity(ofTopic topic: String) -> String? {
        guard topic.utf8.starts(with: topicPrefix.utf8) else { return nil }
        return String(topic.dropFirst(topicPrefix.count))
    }

    /// Whether a message is one that only the hub may send to the topic: whoever knows an activity's id could tell its
    /// user anything otherwise.
    package static func isReserved(event: String, topic: String) -> Bool {
        activity(ofTopic: topic) != nil && reserved.contains { event.utf8.elementsEqual($0.utf8) }
    }

    private static let reserved = ["summary", "end"]

    static func isReserved(_ message: Broadcast, topic: String) -> Bool {
        guard activity(ofTopic: topic) != nil else { return false }
        switch message {
        case .user(let user): return isReserved(event: user.event, topic: topic)
        case .text(let bytes):
            // Which of several members of one name counts, parsers do not agree about.
            var isReserved = false
            JSON(trusted: bytes[...]).forEachMember { member in
                guard member.isNamed("event"), let event = member.value.string else { return }
                if Self.isReserved(event: event, topic: topic) { isReserved = true }
            }
            return isReserved
        }
    }

    /// - Parameters:
    ///   - timestamp: seconds since 1970, as `aps.timestamp`.
    ///   - state: the content-state, a JSON object.
    package init(activity: String, user: String, timestamp: Int64, event: ActivityEvent, state: [UInt8]) {
        topic = Self.topicPrefix + activity
        self.user = user
        message =
            Array("{\"event\":\"summary\",\"payload\":{\"activityId\":".utf8) + JSONString.encode(activity)
            + ",\"timestamp\":\(timestamp),\"event\":\"\(event.rawValue)\",\"contentState\":".utf8 + state
            + "},\"type\":\"broadcast\"}".utf8
    }
}
