import Synchronization
package import Wire

/// The state of a Live Activity on its way to the app by its socket: a broadcast of the event `summary` in the channel
/// `live-activity:ID`.
package struct ActivitySummary: Sendable {
    /// With its prefix.
    package let topic: String
    /// The claim `sub` of the user that registered the activity; no other user is told.
    package let user: Name
    /// The payload of a `broadcast` event.
    package let message: [UInt8]

    private static let topicPrefix = ChannelKey.prefix + "live-activity:"

    /// Returns the activity's ID; nil if the topic is not an activity's.
    static func activity(ofTopic topic: String) -> Name? {
        guard topic.utf8.starts(with: topicPrefix.utf8) else { return nil }
        return Name(Substring(topic.utf8.dropFirst(topicPrefix.utf8.count)))
    }

    /// Whether only the hub may send such a message to the topic: otherwise anyone who knows an activity's ID could
    /// tell its user anything.
    package static func isReserved(event: String, topic: String) -> Bool {
        activity(ofTopic: topic) != nil && reserved.contains { event.utf8.elementsEqual($0.utf8) }
    }

    private static let reserved = ["summary", "end"]

    static func isReserved(_ message: BroadcastMessage, topic: String) -> Bool {
        guard activity(ofTopic: topic) != nil else { return false }
        switch message {
        case .user(let user): return isReserved(event: user.event, topic: topic)
        case .text(let bytes):
            // Parsers disagree about which of several members with the same name counts.
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
    package init(activity: Name, user: Name, timestamp: Int64, event: ActivityEvent, state: [UInt8]) {
        topic = Self.topicPrefix + activity.text
        self.user = user
        message =
            Array("{\"event\":\"summary\",\"payload\":{\"activityId\":".utf8) + JSONString.encode(activity.text)
            + ",\"timestamp\":\(timestamp),\"event\":\"\(event.rawValue)\",\"contentState\":".utf8 + state
            + "},\"type\":\"broadcast\"}".utf8
    }
}

/// The states of Live Activities, for apps that show them while a socket is alive.
struct Summaries {
    /// Nil if the hub does not know the states of Live Activities.
    let joins: SummaryJoins?

    /// Records a join, if the channel is an activity's, so that its state is sent.
    func recordJoin(_ membership: Membership) {
        joins?.recordJoin(membership.channel.key.topic, by: membership.claims.subject)
    }

    /// Sends a summary to the sockets of its user in a channel, and to no others that joined it.
    func sendSummary(_ summary: ActivitySummary, in channel: LocalChannel, _ hub: inout HubContext) {
        for slot in channel.listeners.slots {
            guard let membership = hub.member(slot, of: channel), isUser(summary.user, membership),
                let frame = BroadcastMessage.text(summary.message).frame(membership.version, in: channel)
            else { continue }
            hub.sendFrame(frame, to: membership)
        }
    }

    private func isUser(_ user: Name, _ membership: Membership) -> Bool {
        membership.claims.subject == user
    }
}

/// Joins of Live Activities' channels whose states are to be sent: the owner of the states asks for them.
///
/// Shared by all loops; safe from any thread, behind one lock that is held for an insertion.
package final class SummaryJoins: Sendable {
    package struct Join: Hashable, Sendable {
        package let activity: Name
        package let user: Name

        package init(activity: Name, user: Name) {
            self.activity = activity
            self.user = user
        }
    }

    private let joins = Mutex<Set<Join>>([])
    /// Beyond this, an app waits for the next state.
    private static let most = 10_000
    /// In bytes; no activity's ID is longer, while topics may be.
    private static let longest = 200

    package init() {}

    func recordJoin(_ topic: String, by user: Name?) {
        guard let user, let activity = ActivitySummary.activity(ofTopic: topic),
            activity.utf8.count <= Self.longest
        else { return }
        joins.withLock { joins in
            if joins.count < Self.most { joins.insert(Join(activity: activity, user: user)) }
        }
    }

    /// Removes and returns the joins since the last call.
    package func takeAll() -> Set<Join> {
        joins.withLock { joins in
            defer { joins = [] }
            return joins
        }
    }
}
