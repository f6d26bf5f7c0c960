package import Wire

/// Which users are online, and which of their devices, by the sockets of this loop; and whether a user has too many.
struct Users {
    /// Nil: nobody asks who is online.
    let online: UserPresence?
    /// The same for their devices, by `DeviceKey`.
    let devices: UserPresence?
    /// Nil: users may have any number of sockets.
    let limiter: (any UserConnectionLimiter)?

    // MARK: Online

    /// A socket shows whose it is, at the door or with a join. Who shows somebody else's token is somebody else from then.
    func comeOnline(_ connection: Connection, as claims: Claims, on loop: Int, at now: HubTime) {
        guard let online, let user = claims.subject else { return }
        // Who is asked what has arrived has devices to be asked for.
        let place = devices.map { _ in SocketPlace(loop: loop, slot: connection.slot) }
        let device = devices.flatMap { _ in DeviceKey.of(claims) }
        if connection.user != user {
            if let other = connection.user { leave(online, other, connection, from: place, window: 0, at: now) }
            connection.user = user
            online.enter(user, from: place, at: now)
        }
        guard let devices else { return }
        if connection.device != device {
            if let other = connection.device { leave(devices, other, connection, from: place, window: 0, at: now) }
            connection.device = device
            if let device { devices.enter(device, from: place, at: now) }
        }
        if changesOfWatch > 0 { follow(connection, at: now) }
    }

    private func leave(
        _ presence: UserPresence, _ user: Name, _ connection: Connection, from place: SocketPlace?, window: Int64,
        at now: HubTime
    ) {
        if let liveness = connection.liveness { presence.remove(liveness, of: user) }
        presence.leave(user, from: place, wasShown: connection.appState != .background, window: window, at: now)
    }

    /// Counts how often it changed who is watched.
    var changesOfWatch: Int { (online?.changesOfWatch ?? 0) + (devices?.changesOfWatch ?? 0) }

    /// Begins, or ends, to note when a socket's client proves that it is there.
    func follow(_ connection: Connection, at now: HubTime) {
        guard let online, let devices, let user = connection.user else { return }
        guard online.isWatched(user) || connection.device.map({ devices.isWatched($0) }) ?? false else {
            connection.liveness = nil
            return
        }
        let socket = connection.liveness ?? SocketLiveness(at: now.monotonic)
        connection.liveness = socket
        online.add(socket, of: user)
        if let device = connection.device { devices.add(socket, of: device) }
    }

    /// How long a socket's user may take to come back, in milliseconds. Who left all channels first took leave.
    func window(of connection: Connection, _ rules: PresenceRules) -> Int64 {
        guard online != nil, connection.user != nil else { return 0 }
        return connection.memberships.lazy.map { rules.windows(of: $0.channel.key)[connection.appState] }.max() ?? 0
    }

    /// - Parameter silence: for how many milliseconds its client has not answered; its window began then.
    func goOffline(
        _ connection: Connection, on loop: Int, window: Int64, afterSilence silence: Int64, at now: HubTime
    ) {
        guard let online, let user = connection.user else { return }
        let left = max(0, window - silence)
        let place = devices.map { _ in SocketPlace(loop: loop, slot: connection.slot) }
        leave(online, user, connection, from: place, window: left, at: now)
        if let devices, let device = connection.device {
            leave(devices, device, connection, from: place, window: left, at: now)
        }
    }

    /// Ends the windows that are over. To be called once a second.
    func advance(to now: HubTime) {
        online?.advance(to: now)
        devices?.advance(to: now)
    }

    // MARK: How many sockets

    /// Counts a socket among its user's from the first join on that says who it is: most clients open theirs with a key
    /// of the project, which names nobody.
    func count(_ connection: Connection, as claims: Claims, _ limits: HubLimits) throws(Refusal) {
        guard let limiter, limiter.countsUsers, let user = claims.subject, connection.limits.user == nil
        else { return }
        guard limiter.enter(user) else { throw .over(.connectionsPerUser, limits.connectionsPerUser) }
        connection.limits.user = user
    }

    /// A socket whose user the door has counted already.
    func adopt(_ connection: Connection) {
        if limiter != nil { connection.limits.user = connection.claims.subject }
    }

    func release(_ connection: Connection) {
        if let user = connection.limits.user { limiter?.leave(user) }
    }
}

/// Counts the sockets of each user, over all loops and hubs. The hub asks; it shares nothing with the other hubs itself.
package protocol UserConnectionLimiter: Sendable {
    /// Whether users are limited now; whom nobody limits nobody counts.
    var countsUsers: Bool { get }
    /// Counts one more socket of a user; false if that would be too many, and then it is not counted.
    func enter(_ user: Name) -> Bool
    /// A socket that was counted is gone.
    func leave(_ user: Name)
}

/// One sign-in of a user, which is one device: what a Live Activity asks of is the phone that shows it, not the laptop of
/// the same user.
package enum DeviceKey {
    /// - Parameter session: the claim `session_id`, as Supabase Auth gives one to each sign-in.
    package static func of(user: Name, session: Name) -> Name { Name("\(session) \(user)") }

    /// Nil where the token names no user, or no session.
    package static func of(_ claims: Claims) -> Name? {
        guard let user = claims.subject, let session = claims.session else { return nil }
        return of(user: user, session: session)
    }
}

extension Claims {
    /// The claim `session_id`.
    package var session: Name? {
        JSON(trusted: json[...])["session_id"]?.string.flatMap { $0.isEmpty ? nil : Name($0) }
    }
}
