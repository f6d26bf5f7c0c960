package import Wire

/// The users that are online, and their devices, by the sockets of this loop; and whether a user has too many sockets.
struct Users {
    /// Nil if online users are not tracked.
    let online: UserPresence?
    /// The same for devices, by `DeviceKey`.
    let devices: UserPresence?
    /// Nil if users may have any number of sockets.
    let limiter: (any UserConnectionLimiter)?

    // MARK: Online

    /// Attributes a socket to a user, at the door or with a join. A socket that brings another user's token is that
    /// user's from then on.
    func comeOnline(_ connection: Connection, as claims: Claims, on loop: Int, at now: HubTime) {
        guard let online, let user = claims.subject else { return }
        // Receipts are only asked for if devices are tracked.
        let place = devices.map { _ in SocketPlace(loop: loop, slot: connection.slot) }
        let device = devices.flatMap { _ in DeviceKey.makeKey(claims) }
        if connection.user != user {
            if let other = connection.user { leavePresence(online, other, connection, from: place, window: 0, at: now) }
            connection.user = user
            online.socketOpened(user, from: place, at: now)
        }
        guard let devices else { return }
        if connection.device != device {
            if let other = connection.device {
                leavePresence(devices, other, connection, from: place, window: 0, at: now)
            }
            connection.device = device
            if let device { devices.socketOpened(device, from: place, at: now) }
        }
        if changesOfWatch > 0 { updateLiveness(connection, at: now) }
    }

    private func leavePresence(
        _ presence: UserPresence, _ user: Name, _ connection: Connection, from place: SocketPlace?, window: Int64,
        at now: HubTime
    ) {
        if let liveness = connection.liveness { presence.removeLiveness(liveness, of: user) }
        presence.socketClosed(user, from: place, wasShown: connection.appState != .background, window: window, at: now)
    }

    /// Counts changes of who is watched.
    var changesOfWatch: Int { (online?.changesOfWatch ?? 0) + (devices?.changesOfWatch ?? 0) }

    /// Starts or stops tracking a socket's signs of life.
    func updateLiveness(_ connection: Connection, at now: HubTime) {
        guard let online, let devices, let user = connection.user else { return }
        guard online.isWatched(user) || connection.device.map({ devices.isWatched($0) }) ?? false else {
            connection.liveness = nil
            return
        }
        let socket = connection.liveness ?? SocketLiveness(at: now.monotonic)
        connection.liveness = socket
        online.addLiveness(socket, of: user)
        if let device = connection.device { devices.addLiveness(socket, of: device) }
    }

    /// Returns how long a socket's user may take to come back, in milliseconds. A client that first left all channels
    /// left on purpose.
    func window(of connection: Connection, _ rules: PresenceRules) -> Int64 {
        guard online != nil, connection.user != nil else { return 0 }
        return connection.memberships.lazy.map { rules.windows(of: $0.channel.key)[connection.appState] }.max() ?? 0
    }

    /// - Parameter silence: milliseconds for which its client had not answered; its window began then.
    func goOffline(
        _ connection: Connection, on loop: Int, window: Int64, afterSilence silence: Int64, at now: HubTime
    ) {
        guard let online, let user = connection.user else { return }
        let left = max(0, window - silence)
        let place = devices.map { _ in SocketPlace(loop: loop, slot: connection.slot) }
        leavePresence(online, user, connection, from: place, window: left, at: now)
        if let devices, let device = connection.device {
            leavePresence(devices, device, connection, from: place, window: left, at: now)
        }
    }

    /// Ends windows that are over. Call once a second.
    func advanceTime(to now: HubTime) {
        online?.advanceTime(to: now)
        devices?.advanceTime(to: now)
    }

    // MARK: Limits

    /// Counts a socket towards its user's limit at the first join that names the user: most clients open theirs with a
    /// key of the project, which names none.
    func countSocket(_ connection: Connection, as claims: Claims, _ limits: HubLimits) throws(Refusal) {
        guard let limiter, limiter.countsUsers, let user = claims.subject, connection.limits.user == nil
        else { return }
        guard limiter.admitSocket(user) else { throw .over(.connectionsPerUser, limits.connectionsPerUser) }
        connection.limits.user = user
    }

    /// Marks a socket that the door has counted already.
    func markCounted(_ connection: Connection) {
        if limiter != nil { connection.limits.user = connection.claims.subject }
    }

    func releaseSocket(_ connection: Connection) {
        if let user = connection.limits.user { limiter?.releaseSocket(user) }
    }
}

/// Counts each user's sockets over all loops and hubs. The hub asks, and shares nothing with other hubs itself.
package protocol UserConnectionLimiter: Sendable {
    /// Whether users are limited now; they are not counted otherwise.
    var countsUsers: Bool { get }
    /// Counts another socket of a user; returns false, without counting it, if that would be too many.
    func admitSocket(_ user: Name) -> Bool
    /// Releases a socket that was counted.
    func releaseSocket(_ user: Name)
}

/// One sign-in of a user, which means one device: a Live Activity concerns the phone that shows it, not the same user's
/// laptop.
package enum DeviceKey {
    /// - Parameter session: the claim `session_id`, which Supabase Auth sets for each sign-in.
    package static func makeKey(user: Name, session: Name) -> Name { Name("\(session) \(user)") }

    /// Nil if the token names no user or no session.
    package static func makeKey(_ claims: Claims) -> Name? {
        guard let user = claims.subject, let session = claims.session else { return nil }
        return makeKey(user: user, session: session)
    }
}

extension Claims {
    /// The claim `session_id`.
    package var session: Name? {
        JSON(trusted: json[...])["session_id"]?.string.flatMap { $0.isEmpty ? nil : Name($0) }
    }
}
