package import Hub
package import Wire

/// A push to a Live Activity (Apple: "Starting and updating Live Activities with ActivityKit push notifications").
///
/// The content-state is passed through to the byte: the phone decodes it with JSONDecoder's defaults, and silently drops an update that
/// is not exactly what the app expects.
package struct ActivityPayload: Sendable {
    package enum Step: Sendable {
        /// Starts an activity. Apple allows no start without an alert.
        case start(ActivityStart, alert: ActivityAlert)
        case update(alert: ActivityAlert? = nil)
        /// The activity stays on the lock screen until `dismissal`, in seconds since 1970: a past time removes it at once; nil leaves
        /// it for up to four hours.
        case end(alert: ActivityAlert? = nil, dismissal: Int64? = nil)
    }

    package let step: Step
    /// Seconds since 1970. The phone ignores a payload older than what it shows.
    package let timestamp: Int64
    /// Nil only for an end without a known final state: the phone then keeps the one it has.
    package let contentState: JSON?
    /// The time when the phone marks the content as out of date, in seconds since 1970.
    package let staleDate: Int64
    package let relevanceScore: Double?

    package init(
        _ step: Step, timestamp: Int64, contentState: JSON?, staleDate: Int64, relevanceScore: Double? = nil
    ) {
        self.step = step
        self.timestamp = timestamp
        self.contentState = contentState
        self.staleDate = staleDate
        self.relevanceScore = relevanceScore
    }

    package var event: ActivityEvent {
        switch step {
        case .start: .start
        case .update: .update
        case .end: .end
        }
    }

    var alert: ActivityAlert? {
        switch step {
        case .start(_, let alert): alert
        case .update(let alert), .end(let alert, _): alert
        }
    }

    /// Returns the JSON for a kind of service.
    ///
    /// - Parameter activity: the id under which an app on Android knows the activity.
    package func bytes(for kind: PushKind, activity: Name) throws(PayloadError) -> [UInt8] {
        switch kind {
        case .apns: try bytes()
        case .fcm: try messageBytes(of: activity)
        case .web: throw PayloadError.noActivities
        }
    }

    /// Returns the JSON for APNs. Nothing in a Live Activity is ever cut: JSON of more than `limit` bytes throws.
    package func bytes(limit: Int = PayloadLimit.device) throws(PayloadError) -> [UInt8] {
        var writer = JSONWriter()
        writer.openObject()
        writer.writeKey("aps")
        writer.openObject()
        try write(into: &writer)
        writer.closeObject()
        writer.closeObject()
        guard writer.bytes.count <= limit else {
            throw PayloadError.tooLarge(bytes: writer.bytes.count, limit: limit)
        }
        return writer.bytes
    }

    private func write(into aps: inout JSONWriter) throws(PayloadError) {
        aps.writeMember("timestamp", timestamp)
        aps.writeMember("event", event.rawValue)
        if let contentState {
            guard contentState.kind == .object else { throw PayloadError.noObject(key: "content-state") }
            aps.writeMember("content-state", json: contentState.bytes)
        } else if event != .end {
            throw PayloadError.noObject(key: "content-state")
        }
        aps.writeMember("stale-date", staleDate)
        if let relevanceScore {
            guard relevanceScore.isFinite else { throw PayloadError.badRelevanceScore }
            aps.writeMember("relevance-score", json: Array(String(relevanceScore).utf8))
        }
        if let alert { aps.writeMember("alert", json: alert.json.bytes) }
        switch step {
        case .start(let start, _): try write(start, into: &aps)
        case .end(_, let dismissal?): aps.writeMember("dismissal-date", dismissal)
        case .update, .end: break
        }
    }

    private func write(_ start: ActivityStart, into aps: inout JSONWriter) throws(PayloadError) {
        guard start.attributes.kind == .object else { throw PayloadError.noObject(key: "attributes") }
        aps.writeMember("attributes-type", start.attributesType)
        aps.writeMember("attributes", json: start.attributes.bytes)
        switch start.input {
        case .token: aps.writeMember("input-push-token", 1)
        case .channel(let id): aps.writeMember("input-push-channel", id)
        case nil: break
        }
    }
}

/// The start of a Live Activity by push (iOS 17.2): the values of the app's `ActivityAttributes`.
package struct ActivityStart: Sendable {
    /// The source of the updates of a started activity (iOS 18).
    package enum Input: Sendable, Equatable {
        /// A new token: the app is woken with it and registers it.
        case token
        /// Broadcasts to the channel with this id.
        case channel(String)
    }

    /// The name of the struct that conforms to `ActivityAttributes`.
    package let attributesType: String
    package let attributes: JSON
    package let input: Input?

    package init(attributesType: String, attributes: JSON, input: Input? = nil) {
        self.attributesType = attributesType
        self.attributes = attributes
        self.input = input
    }
}

/// The alert that comes with an update of a Live Activity: a title, a body, a sound.
package struct ActivityAlert: Sendable {
    /// The alert to the byte as sent.
    package let json: JSON

    package init(title: String, body: String, sound: String? = "default") {
        let alert = JSONWriter.object { alert in
            alert.writeMember("title", title)
            alert.writeMember("body", body)
            if let sound { alert.writeMember("sound", sound) }
        }
        json = JSON(trusted: alert[...])
    }

    /// Checks a caller's alert. Title and body are texts, or objects with `loc-key` and `loc-args` (Apple: "Starting and updating Live
    /// Activities with ActivityKit push notifications").
    package init(checking json: JSON) throws(PayloadError) {
        func isLine(_ value: JSON?) -> Bool {
            value?.kind == .string || (value?.kind == .object && value?["loc-key"]?.kind == .string)
        }
        guard json.kind == .object, isLine(json["title"]), isLine(json["body"]) else { throw PayloadError.badAlert }
        self.json = json
    }
}

/// An update or the end of every Live Activity that listens to a channel (iOS 18): one push for all of them. It has
/// more room than a push to one phone, and cannot start anything.
package struct ChannelBroadcast: Sendable {
    /// Apple's id of the channel, for the header `apns-channel-id`.
    package let channel: Name
    private let payload: ActivityPayload

    private init(channel: Name, _ payload: ActivityPayload) {
        self.channel = channel
        self.payload = payload
    }

    /// Times are in seconds since 1970.
    package static func update(
        channel: Name, contentState: JSON, timestamp: Int64, staleDate: Int64, alert: ActivityAlert? = nil
    ) -> ChannelBroadcast {
        ChannelBroadcast(
            channel: channel,
            ActivityPayload(
                .update(alert: alert), timestamp: timestamp, contentState: contentState, staleDate: staleDate))
    }

    package static func end(
        channel: Name, contentState: JSON, timestamp: Int64, staleDate: Int64, alert: ActivityAlert? = nil,
        dismissal: Int64? = nil
    ) -> ChannelBroadcast {
        ChannelBroadcast(
            channel: channel,
            ActivityPayload(
                .end(alert: alert, dismissal: dismissal), timestamp: timestamp, contentState: contentState,
                staleDate: staleDate))
    }

    package func bytes() throws(PayloadError) -> [UInt8] { try payload.bytes(limit: PayloadLimit.channel) }
}
