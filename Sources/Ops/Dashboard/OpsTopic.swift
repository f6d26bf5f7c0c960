import Gateway

/// What a page may look at, by the topic it joins.
enum OpsTopic: Hashable, Sendable {
    /// The last minutes, and each second from here on.
    case overview
    /// The busiest channels.
    case channels
    /// Connections that do not keep up.
    case slow
    /// Connections that came last.
    case newest
    /// One channel, by its topic as clients write it: `ops:channel:realtime:room`.
    case channel(String)
    case connection(ConnectionID)
    /// The connections of a user, by the claim `sub`.
    case user(String)
    /// The last warnings.
    case log
    /// The configuration in force.
    case configuration

    init?(_ topic: String) {
        let parts = topic.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0] == "ops" else { return nil }
        let rest = parts.count == 3 ? String(parts[2]) : nil
        switch (parts[1], rest) {
        case ("overview", nil): self = .overview
        case ("channels", nil): self = .channels
        case ("slow", nil): self = .slow
        case ("newest", nil): self = .newest
        case ("log", nil): self = .log
        case ("configuration", nil): self = .configuration
        case ("channel", let name?) where !name.isEmpty: self = .channel(name)
        case ("user", let name?) where !name.isEmpty: self = .user(name)
        case ("connection", let text?):
            guard let id = ConnectionID(text) else { return nil }
            self = .connection(id)
        default: return nil
        }
    }
}
