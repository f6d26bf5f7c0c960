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

    /// - Parameters:
    ///   - timestamp: seconds since 1970, as `aps.timestamp`.
    ///   - state: the content-state, a JSON object.
    package init(activity: String, user: String, timestamp: Int64, event: ActivityEvent, state: [UInt8]) {
        topic = ChannelKey.prefix + "live-activity:" + activity
        self.user = user
        message =
            Array("{\"event\":\"summary\",\"payload\":{\"activityId\":".utf8) + JSONString.encode(activity)
            + ",\"timestamp\":\(timestamp),\"event\":\"\(event.rawValue)\",\"contentState\":".utf8 + state
            + "},\"type\":\"broadcast\"}".utf8
    }
}
