/// Which users are online, and which of their devices, by the sockets of this loop.
extension Hub {
    /// A socket shows whose it is, at the door or with a join. Who shows somebody else's token is somebody else from then.
    func comeOnline(_ connection: Connection, as claims: Claims) {
        guard let users, let user = claims.subject else { return }
        let device = devices.flatMap { _ in DeviceKey.of(claims) }
        if connection.user != user {
            if let other = connection.user { users.leave(other, window: 0, at: latest) }
            connection.user = user
            users.enter(user, at: latest)
        }
        guard let devices, connection.device != device else { return }
        if let other = connection.device { devices.leave(other, window: 0, at: latest) }
        connection.device = device
        if let device { devices.enter(device, at: latest) }
    }

    /// How long its user may take to come back. Who left all channels first took leave.
    func onlineWindow(of connection: Connection) -> Int64 {
        guard users != nil, connection.user != nil else { return 0 }
        return connection.memberships.lazy.map { self.presenceRules.windows(of: $0.channel.key)[connection.appState] }
            .max()
            ?? 0
    }

    func goOffline(_ connection: Connection, window: Int64) {
        guard let users, let user = connection.user else { return }
        users.leave(user, window: window, at: latest)
        if let device = connection.device { devices?.leave(device, window: window, at: latest) }
    }
}
