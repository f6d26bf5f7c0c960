/// One question of a loop; never used twice, so that a late answer finds nobody.
package struct AuthorizationID: Hashable, Sendable {
    package let loop: Int
    package let serial: Int

    package init(loop: Int, serial: Int) {
        self.loop = loop
        self.serial = serial
    }
}

/// What the policies on `realtime.messages` are asked.
package struct AuthorizationQuestion: Sendable {
    package let claims: Claims
    /// Without its prefix, as `realtime.topic()` gives it.
    package let topic: String
    package let right: Right

    package enum Right: Sendable, Equatable {
        /// Which extensions may be read. With a replay, what is to be replayed to a reader of broadcasts, too; it is read
        /// no earlier than the policies.
        case read(replay: ReplayRequest?)
        /// Which of these may be written.
        case write(ChannelExtensions)
    }

    package init(claims: Claims, topic: String, right: Right) {
        self.claims = claims
        self.topic = topic
        self.right = right
    }
}
