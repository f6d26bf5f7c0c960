package import Hub
package import Wire

/// What the event loops know of people, as pushes see it: who is connected, who types, who is present. Safe from any
/// thread.
package struct PresenceView: Sendable {
    package let users: UserPresence
    /// The devices of users, by `DeviceKey`.
    package let devices: UserPresence
    package let typing: TypingRegistry
    package let presence: PresenceLog
    /// Who has just joined the channel of a Live Activity.
    package let joins = SummaryJoins()
    /// Who has certainly received which message.
    package let receipts = ReceiptRegistry()

    package init(users: UserPresence, devices: UserPresence, typing: TypingRegistry, presence: PresenceLog) {
        self.users = users
        self.devices = devices
        self.typing = typing
        self.presence = presence
    }

    /// Whether the phone that shows an activity is connected: by its own sign-in where that is known, otherwise by its
    /// user.
    ///
    /// - Parameter now: monotonic milliseconds.
    func status(of user: Name, session: Name?, at now: Int64) -> ConnectionStatus {
        guard let session else { return users.status(of: user, at: now) }
        return devices.status(of: DeviceKey.makeKey(user: user, session: session), at: now)
    }

    /// What sockets may prove that a user has something, or one of the user's devices.
    ///
    /// - Parameters:
    ///   - session: of the device's sign-in; nil for all of the user's devices.
    ///   - demandsShown: only apps count that were on the screen when they were cut off, or a moment before.
    ///   - isRestarting: the devices of the hub's last process may come back. It is not known which those are, but whose.
    package func sockets(of user: Name, session: Name?, demandsShown: Bool, isRestarting: Bool) -> UserSockets {
        guard let session else { return users.sockets(of: user, demandsShown: demandsShown) }
        let own = devices.sockets(of: DeviceKey.makeKey(user: user, session: session), demandsShown: demandsShown)
        guard isRestarting, own.places.isEmpty, own.graceUntil == nil else { return own }
        return UserSockets(
            places: [], graceUntil: users.sockets(of: user, demandsShown: demandsShown).graceUntil)
    }

    /// Begins, or ends, to ask the phone that shows an activity every few seconds whether it is there.
    func watch(_ user: Name, session: Name?, _ isWatched: Bool) {
        guard let session else { return users.setWatched(user, isWatched) }
        devices.setWatched(DeviceKey.makeKey(user: user, session: session), isWatched)
    }

    /// A public and a private channel of one name are two rooms, and a conversation is in one of them.
    private static func keys(_ topic: Name) -> [ChannelKey] {
        [true, false].map { ChannelKey(topic: ChannelKey.prefix + topic.text, isPrivate: $0) }
    }

    /// Begins to note who types and is present in a topic.
    func watch(_ topic: Name) {
        for key in Self.keys(topic) {
            typing.watchChannel(key)
            presence.watchChannel(key)
        }
    }

    func forget(_ topic: Name) {
        for key in Self.keys(topic) {
            typing.unwatchChannel(key)
            presence.unwatchChannel(key)
        }
    }

    /// Who types in a topic that is watched.
    ///
    /// - Parameter now: monotonic milliseconds.
    func typists(in topic: Name, at now: Int64) -> [(user: Name?, payload: [UInt8])] {
        Self.keys(topic).flatMap { typing.typists(in: $0, at: now) }
    }

    /// The presence keys of those who are present in a topic that is watched; apps use their users' ids.
    func present(in topic: Name) -> [Name] {
        Array(Set(Self.keys(topic).flatMap { presence.presentKeys(in: $0) })).sorted()
    }
}

/// The channels that are watched because the conversation of a Live Activity is there.
struct WatchedTopics {
    private var topics: [Name: Name] = [:]
    private(set) var activitiesByTopic: [Name: Set<Name>] = [:]

    var activities: some Sequence<Name> { topics.keys }

    func contains(_ id: Name) -> Bool { topics[id] != nil }

    /// - Returns: whether the topic is to be watched from here on.
    mutating func add(_ id: Name, to topic: Name) -> Bool {
        topics[id] = topic
        activitiesByTopic[topic, default: []].insert(id)
        return activitiesByTopic[topic]?.count == 1
    }

    /// - Returns: the topic, where it need not be watched any more.
    mutating func remove(_ id: Name) -> Name? {
        guard let topic = topics.removeValue(forKey: id) else { return nil }
        activitiesByTopic[topic]?.remove(id)
        guard activitiesByTopic[topic]?.isEmpty == true else { return nil }
        activitiesByTopic[topic] = nil
        return topic
    }
}
