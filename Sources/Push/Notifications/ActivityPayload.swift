package import Hub
package import Wire

/// A push to a Live Activity (Apple: "Starting and updating Live Activities with ActivityKit push notifications").
///
/// The content-state is passed through to the byte: the phone decodes it with JSONDecoder's defaults, and what is not
/// exactly what the app expects makes it drop the update without a word.
package struct ActivityPayload: Sendable {
    package enum Step: Sendable {
        /// Starts an activity. Apple allows no start without an alert.
        case start(ActivityStart, alert: ActivityAlert)
        case update(alert: ActivityAlert? = nil)
        /// The activity stays on the lock screen until `dismissal`, in seconds since 1970: a time that is past takes it
        /// away at once; nil leaves it for up to four hours.
        case end(alert: ActivityAlert? = nil, dismissal: Int64? = nil)
    }

    package let step: Step
    /// Seconds since 1970. The phone ignores what is older than what it shows.
    package let timestamp: Int64
    /// Nil only for an end of which no final state is known: the phone then keeps the one it has.
    package let contentState: JSON?
    /// When the phone is to mark the content as out of date, in seconds since 1970.
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

    /// The JSON for a kind of service.
    ///
    /// - Parameter activity: by which an app on Android knows it.
    package func bytes(for kind: PushKind, activity: Name) throws(PayloadError) -> [UInt8] {
        switch kind {
        case .apns: try bytes()
        case .fcm: try messageBytes(of: activity)
        case .web: throw PayloadError.noActivities
        }
    }

    /// The JSON for APNs. Nothing in a Live Activity is ever cut: where it has more bytes than `limit`, this throws.
    package func bytes(limit: Int = PayloadLimit.device) throws(PayloadError) -> [UInt8] {
        var writer = JSONWriter()
        writer.openObject()
        writer.key("aps")
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
        aps.member("timestamp", timestamp)
        aps.member("event", event.rawValue)
        if let contentState {
            guard contentState.kind == .object else { throw PayloadError.noObject(key: "content-state") }
            aps.member("content-state", json: contentState.bytes)
        } else if event != .end {
            throw PayloadError.noObject(key: "content-state")
        }
        aps.member("stale-date", staleDate)
        if let relevanceScore {
            guard relevanceScore.isFinite else { throw PayloadError.badRelevanceScore }
            aps.member("relevance-score", json: Array(String(relevanceScore).utf8))
        }
        if let alert { aps.member("alert", json: alert.json.bytes) }
        switch step {
        case .start(let start, _): try write(start, into: &aps)
        case .end(_, let dismissal?): aps.member("dismissal-date", dismissal)
        case .update, .end: break
        }
    }

    private func write(_ start: ActivityStart, into aps: inout JSONWriter) throws(PayloadError) {
        guard start.attributes.kind == .object else { throw PayloadError.noObject(key: "attributes") }
        aps.member("attributes-type", start.attributesType)
        aps.member("attributes", json: start.attributes.bytes)
        switch start.input {
        case .token: aps.member("input-push-token", 1)
        case .channel(let id): aps.member("input-push-channel", id)
        case nil: break
        }
    }
}

/// What starts a Live Activity by push (iOS 17.2): the values of the app's `ActivityAttributes`.
package struct ActivityStart: Sendable {
    /// How the phone gets the updates of what was started (iOS 18).
    package enum Input: Sendable, Equatable {
        /// By a new token, which the app is woken with and registers.
        case token
        /// By broadcasts to the channel with this id.
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
    /// The alert as it is sent, to the byte.
    package let json: JSON

    package init(title: String, body: String, sound: String? = "default") {
        let alert = JSONWriter.object { alert in
            alert.member("title", title)
            alert.member("body", body)
            if let sound { alert.member("sound", sound) }
        }
        json = JSON(trusted: alert[...])
    }

    /// Checks an alert that a caller sent. Title and body are texts, or objects with `loc-key` and `loc-args` (Apple:
    /// "Starting and updating Live Activities with ActivityKit push notifications").
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
