package import Hub

/// What the event loops know of people: who is connected, who types, who is present. Safe from any thread.
package struct Whereabouts: Sendable {
    package let users: UserPresence
    package let devices: UserPresence
    package let typing: TypingBoard
    package let presence: PresenceLog
    /// Who has just joined the channel of a Live Activity.
    package let joins = SummaryJoins()

    package init(users: UserPresence, devices: UserPresence, typing: TypingBoard, presence: PresenceLog) {
        self.users = users
        self.devices = devices
        self.typing = typing
        self.presence = presence
    }

    /// How the phone that shows an activity stands: by its own sign-in where that is known, otherwise by its user.
    func standing(of user: String, session: String?) -> Standing {
        guard let session else { return users.standing(of: user) }
        return devices.standing(of: DeviceKey.of(user: user, session: session))
    }

    /// A public and a private channel of one name are two rooms, and a conversation is in one of them.
    private static func keys(_ topic: String) -> [ChannelKey] {
        [true, false].map { ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: $0) }
    }

    func watch(_ topic: String) {
        for key in Self.keys(topic) {
            typing.watch(key)
            presence.watch(key)
        }
    }

    func forget(_ topic: String) {
        for key in Self.keys(topic) {
            typing.forget(key)
            presence.forget(key)
        }
    }

    /// - Parameter now: in monotonic milliseconds.
    func typists(in topic: String, at now: Int64) -> [(user: String?, payload: [UInt8])] {
        Self.keys(topic).flatMap { typing.typists(in: $0, at: now) }
    }

    /// Presence keys; apps use their users' ids.
    func present(in topic: String) -> [String] {
        Array(Set(Self.keys(topic).flatMap { presence.present(in: $0) })).sorted()
    }
}
