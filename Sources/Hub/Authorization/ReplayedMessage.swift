import Wire

/// A row of `realtime.messages` that is sent once more, to one member.
package struct ReplayedMessage: Sendable {
    package let id: String
    package let event: String
    package let body: Body

    package enum Body: Sendable {
        /// The text of a JSON value.
        case json([UInt8])
        case binary([UInt8])
    }

    package init(id: String, event: String, body: Body) {
        self.id = id
        self.event = event
        self.body = body
    }

    private var meta: [UInt8] {
        Array("{\"replayed\":true,\"id\":".utf8) + JSONString.encode(id) + [UInt8(ascii: "}")]
    }

    /// As the original sends it: JSON as a text frame that names the join, bytes as a frame of kind 4. Nil where the
    /// member has no form for it: bytes in version 1, or names longer than a binary frame can carry.
    func frame(_ version: ProtocolVersion, joinRef: JSON, in channel: Channel) -> Frame? {
        switch body {
        case .json(let payload):
            let user = UserBroadcast(event: event, encoding: .json, payload: payload[...], metadata: meta)
            return user.textPayload().map { channel.frames(version).push("broadcast", joinRef: joinRef, payload: $0) }
        case .binary(let payload):
            guard version == .v2 else { return nil }
            let user = UserBroadcast(event: event, encoding: .raw, payload: payload[...], metadata: meta)
            return ServerFrame.userBroadcast(user, topic: channel.key.topic)
        }
    }
}
