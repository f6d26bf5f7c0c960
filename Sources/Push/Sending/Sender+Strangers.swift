import Hub

/// What servers get of which nobody knows whose they are: the URL was said by somebody who registered a device. All of them
/// together must not take what the others need.
enum StrangerLimits {
    /// Of the connections and of the places in the queue.
    static let shareOfConnections = 2
    static let shareOfQueue = 4
    /// How long a notification for them waits at most, in milliseconds.
    static let patience: Int64 = 600_000
    /// How many of them have pools.
    static let servers = 100
}

extension Sender {
    private func isStranger(_ server: ServerName) -> Bool {
        dialect.isStranger(server, wasReached: pools[server]?.wasReached ?? false)
    }

    /// Counts a notification for a stranger's server, and lets it wait for no longer than such ones may.
    ///
    /// - Returns: whether there is a place; otherwise it has its outcome.
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

    /// A notification has its outcome.
    mutating func releaseStranger(_ push: Push) {
        let server = ServerName(push.target)
        guard let held = pools[server]?.held, held > 0 else { return }
        pools[server]?.held = held - 1
    }

    /// Forgets strangers' servers that nothing waits for and nothing connects to.
    mutating func forgetStrangers() {
        guard pools.count > 16 else { return }
        for (server, pool) in pools where pool.held == 0 && pool.links.isEmpty && isStranger(server) {
            pools[server] = nil
            queue.ready[server] = nil
        }
    }

    /// Makes room for one more connection where there are as many as there may be, by closing the one that has been idle for
    /// longest.
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
