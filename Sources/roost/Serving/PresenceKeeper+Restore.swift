import ChangeFeed
import Gateway
import Hub
import Logging
import Settings

extension PresenceKeeper {
    convenience init(
        _ settings: GatewayConfiguration, _ configuration: RoostConfiguration, conninfo: String, _ statement: String?,
        _ logger: Logger
    ) {
        let users = settings.users
        let window = Int64(configuration.restartSeconds) * 1000
        self.init(
            conninfo: conninfo, node: configuration.nodeName, log: settings.presenceLog ?? PresenceLog(), users: users,
            statement: statement, logger: logger
        ) { left in
            users?.restore(left, until: Clock.now().monotonic + window)
        }
    }

    /// Brings back whom the hub's last process served, for a while: whoever comes back in it was never gone.
    ///
    /// - Returns: what the loops are to show.
    func restore(to settings: GatewayConfiguration, within seconds: Int) -> [PresenceBook.Restored] {
        let restored = restore()
        let until = Clock.now().monotonic + Int64(seconds) * 1000
        settings.users?.restore(restored.users, until: until)
        guard seconds > 0 else { return [] }
        for record in restored.presences { settings.presenceLog?.put(record) }
        return settings.presences.restore(restored.presences, until: until)
    }
}
