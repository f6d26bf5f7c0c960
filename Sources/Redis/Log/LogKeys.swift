/// The names that the log of one cluster of hubs has in Redis. They share a hash tag, so that they lie together in a Redis Cluster too.
package struct LogKeys: Sendable, Equatable {
    private let prefix: String

    /// - Parameter cluster: of letters, digits, dots, underscores and hyphens; who names it has checked that.
    package init(cluster: String) { prefix = "{roost:\(cluster)}:" }

    /// The stream of entries.
    package var log: String { prefix + "r" }
    /// The head of the log, whose epoch it is, and the heads of older epochs.
    package var head: String { prefix + "m" }
    /// The channel on which entries and beats are published.
    package var channel: String { prefix + "c" }
    /// The channel of messages to one hub.
    package func channel(of hub: String) -> String { prefix + "n:" + hub }
    /// The lease on a hub's name.
    package func lease(of hub: String) -> String { prefix + "l:" + hub }
    /// A key and a channel that nothing is ever written to: rights are tried on it.
    package var nothing: String { prefix + "doctor" }
    /// All of them, as an operator reads it.
    package var pattern: String { prefix + "*" }

    /// The streams that hubs share: which there are, and how long the log of each is.
    package var streams: String { prefix + "s" }
    /// The log of one of them.
    package func stream(_ id: String) -> String { "\(streams):\(id)" }
    /// Whose epoch the streams are of, and how often they were written.
    package var streamsHead: String { prefix + "sm" }
    /// The channel on which hubs tell each other what became of streams.
    package var streamsChannel: String { prefix + "sc" }
}
