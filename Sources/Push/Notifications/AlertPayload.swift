/// An alert for a phone: what `aps` says, and beside it what the app needs to open the right place.
package struct AlertPayload: Sendable, Equatable {
    package var title: AlertText?
    package var subtitle: AlertText?
    package var body: AlertText?
    /// The number on the app's icon; nil leaves it as it is, 0 takes it away.
    package var badge: Int?
    package var sound: String?
    /// Alerts of one thread are shown together.
    package var threadID: String?
    package var category: String?
    /// For the deep link.
    package var conversationID: String?
    package var messageID: String?

    package init(
        title: AlertText?, subtitle: AlertText? = nil, body: AlertText?, badge: Int? = nil, sound: String? = "default",
        threadID: String? = nil, category: String? = nil, conversationID: String? = nil, messageID: String? = nil
    ) {
        self.title = title
        self.subtitle = subtitle
        self.body = body
        self.badge = badge
        self.sound = sound
        self.threadID = threadID
        self.category = category
        self.conversationID = conversationID
        self.messageID = messageID
    }

    /// The JSON as it is, however large.
    package var bytes: [UInt8] {
        var alert = ObjectWriter()
        title?.write("title", into: &alert)
        subtitle?.write("subtitle", into: &alert)
        body?.write("body", into: &alert)
        var aps = ObjectWriter()
        if !alert.isEmpty { aps.add("alert", json: alert.bytes) }
        if let badge { aps.add("badge", max(0, badge)) }
        if let sound { aps.add("sound", sound) }
        if let threadID { aps.add("thread-id", threadID) }
        if let category { aps.add("category", category) }
        // So that the app's own extension may decrypt, or load an avatar.
        aps.add("mutable-content", 1)
        var whole = ObjectWriter()
        whole.add("aps", json: aps.bytes)
        if let conversationID { whole.add("conversationId", conversationID) }
        if let messageID { whole.add("messageId", messageID) }
        return whole.bytes
    }

    /// The size of the final JSON, in bytes.
    package var size: Int { bytes.count }
}
