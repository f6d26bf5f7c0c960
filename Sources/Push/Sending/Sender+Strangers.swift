import Hub

/// The limits of servers of unknown ownership, whose URLs come from clients that registered a device. All of them together must not use
/// up what the others need.
enum StrangerLimits {
    /// The divisors of their share of the connections and of the queue.
    static let shareOfConnections = 2
    static let shareOfQueue = 4
    /// The longest wait of a notification for them, in milliseconds.
    static let patience: Int64 = 600_000
    /// The maximum number of them with pools.
    static let servers = 100
}

extension Sender {
    private func isStranger(_ server: ServerName) -> Bool {
        dialect.isStranger(server, wasReached: pools[server]?.wasReached ?? false)
    }

    /// Counts a notification for a stranger's server, and shortens its deadline to the limit for such servers.
    ///
    /// - Returns: whether there is a place; otherwise the notification has ended with an outcome.
    mutating func limitStranger(_ server: ServerName, _ push: inout Push, at now: HubTime) -> Bool {
        guard isStranger(server) else { return true }
        let strangers = pools.filter { isStranger($0.key) }
        let waiting = strangers.values.reduce(0) { $0 + $1.held }
        guard waiting < rules.queue / StrangerLimits.shareOfQueue,
            pools[server] != nil || strangers.count < StrangerLimits.servers
        else {
            queue.finished.append((push, .overflow))
            return false
        }
        pools[server, default: ConnectionPool()].held += 1
        push.deadline = min(push.deadline, now.unix + StrangerLimits.patience)
        return true
    }

    /// Notes that a notification has its outcome.
    mutating func releaseStranger(_ push: Push) {
        let server = ServerName(push.target)
        guard let held = pools[server]?.held, held > 0 else { return }
        pools[server]?.held = held - 1
    }

    /// Forgets strangers' servers without waiting notifications and without connections.
    mutating func forgetStrangers() {
        guard pools.count > 16 else { return }
        for (server, pool) in pools where pool.held == 0 && pool.links.isEmpty && isStranger(server) {
            pools[server] = nil
            queue.ready[server] = nil
        }
    }

    /// Makes room for one more connection when the maximum is reached, by closing the one that has been idle the longest.
    ///
    /// - Returns: whether there is room.
    mutating func makeRoom(for server: ServerName) -> Bool {
        guard rules.mostConnections < .max else { return true }
        if isStranger(server) {
            let strangers = servers.filter { isStranger($0.value) }
            let most = rules.mostConnections / StrangerLimits.shareOfConnections
            guard strangers.count < most || closeIdle(of: strangers) else { return false }
        }
        return servers.count < rules.mostConnections || closeIdle(of: servers)
    }

    private mutating func closeIdle(of servers: [PushTransport.Connection: ServerName]) -> Bool {
        var oldest: (connection: PushTransport.Connection, server: ServerName, heard: Int64)?
        for (connection, server) in servers {
            guard let link = pools[server]?.links[connection], link.state == .open, link.inFlight == 0,
                link.heard < oldest?.heard ?? .max
            else { continue }
            oldest = (connection, server, link.heard)
        }
        guard let oldest else { return false }
        drop(oldest.connection, oldest.server)
        return true
    }
}
