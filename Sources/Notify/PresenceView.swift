package import Hub
package import Wire

/// The event loops' knowledge of people, as pushes use it: connections, typing, presence. Safe from any thread.
package struct PresenceView: Sendable {
    package let users: UserPresence
    /// The devices of users, by `DeviceKey`.
    package let devices: UserPresence
    package let typing: TypingRegistry
    package let presence: PresenceLog
    /// Users who have just joined the channel of a Live Activity.
    package let joins = SummaryJoins()
    /// The users who have certainly received each message.
    package let receipts = ReceiptRegistry()

    package init(users: UserPresence, devices: UserPresence, typing: TypingRegistry, presence: PresenceLog) {
        self.users = users
        self.devices = devices
        self.typing = typing
        self.presence = presence
    }

    /// Returns whether the phone that shows an activity is connected: by its own sign-in if known, otherwise by its user.
    ///
    /// - Parameter now: monotonic milliseconds.
    func status(of user: Name, session: Name?, at now: Int64) -> ConnectionStatus {
        guard let session else { return users.status(of: user, at: now) }
        return devices.status(of: DeviceKey.makeKey(user: user, session: session), at: now)
    }

    /// Returns the sockets that may prove that a user, or one of the user's devices, has a message.
    ///
    /// - Parameters:
    ///   - session: the device's sign-in; nil for all of the user's devices.
    ///   - demandsShown: only apps count that were on the screen when they were cut off, or a moment before.
    ///   - isRestarting: the devices of the hub's last process may come back. Which devices these are is unknown, but not their users.
    package func sockets(of user: Name, session: Name?, demandsShown: Bool, isRestarting: Bool) -> UserSockets {
        guard let session else { return users.sockets(of: user, demandsShown: demandsShown) }
        let own = devices.sockets(of: DeviceKey.makeKey(user: user, session: session), demandsShown: demandsShown)
        guard isRestarting, own.places.isEmpty, own.graceUntil == nil else { return own }
        return UserSockets(
            places: [], graceUntil: users.sockets(of: user, demandsShown: demandsShown).graceUntil)
    }

    /// Starts or stops asking the phone that shows an activity, every few seconds, whether it is there.
    func watch(_ user: Name, session: Name?, _ isWatched: Bool) {
        guard let session else { return users.setWatched(user, isWatched) }
        devices.setWatched(DeviceKey.makeKey(user: user, session: session), isWatched)
    }

    /// Returns both channels of a topic: a conversation may use the public or the private one.
    private static func keys(_ topic: Name) -> [ChannelKey] {
        [true, false].map { ChannelKey(topic: ChannelKey.prefix + topic.text, isPrivate: $0) }
    }

    /// Starts to track typing and presence in a topic.
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

    /// Returns the users typing in a watched topic.
    ///
    /// - Parameter now: monotonic milliseconds.
    func typists(in topic: Name, at now: Int64) -> [(user: Name?, payload: [UInt8])] {
        Self.keys(topic).flatMap { typing.typists(in: $0, at: now) }
    }

    /// Returns the presence keys in a watched topic; apps use their users' ids.
    func present(in topic: Name) -> [Name] {
        Array(Set(Self.keys(topic).flatMap { presence.presentKeys(in: $0) })).sorted()
    }
}

/// The channels that are watched because they hold the conversation of a Live Activity.
struct WatchedTopics {
    private var topics: [Name: Name] = [:]
    private(set) var activitiesByTopic: [Name: Set<Name>] = [:]

    var activities: some Sequence<Name> { topics.keys }

    func contains(_ id: Name) -> Bool { topics[id] != nil }

    /// - Returns: whether to start watching the topic.
    mutating func add(_ id: Name, to topic: Name) -> Bool {
        topics[id] = topic
        activitiesByTopic[topic, default: []].insert(id)
        return activitiesByTopic[topic]?.count == 1
    }

    /// - Returns: the topic, if it need not be watched any more.
    mutating func remove(_ id: Name) -> Name? {
        guard let topic = topics.removeValue(forKey: id) else { return nil }
        activitiesByTopic[topic]?.remove(id)
        guard activitiesByTopic[topic]?.isEmpty == true else { return nil }
        activitiesByTopic[topic] = nil
        return topic
    }
}
