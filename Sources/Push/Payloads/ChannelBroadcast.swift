package import Wire

/// An update or the end of every Live Activity that listens to a channel (iOS 18): one push for all of them. It has
/// more room than a push to one phone, and cannot start anything.
package struct ChannelBroadcast: Sendable {
    /// Apple's id of the channel, for the header `apns-channel-id`.
    package let channel: String
    private let payload: ActivityPayload

    private init(channel: String, _ payload: ActivityPayload) {
        self.channel = channel
        self.payload = payload
    }

    /// Times are in seconds since 1970.
    package static func update(
        channel: String, contentState: JSON, timestamp: Int64, staleDate: Int64, alert: ActivityAlert? = nil
    ) -> ChannelBroadcast {
        ChannelBroadcast(
            channel: channel,
            ActivityPayload(
                .update(alert: alert), timestamp: timestamp, contentState: contentState, staleDate: staleDate))
    }

    package static func end(
        channel: String, contentState: JSON, timestamp: Int64, staleDate: Int64, alert: ActivityAlert? = nil,
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
