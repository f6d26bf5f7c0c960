/// The names of a cluster's log in Redis. They share a hash tag, so that they stay together even in a Redis Cluster.
package struct LogKeys: Sendable, Equatable {
    private let prefix: String

    /// - Parameter cluster: letters, digits, dots, underscores and hyphens; the caller has checked that.
    package init(cluster: String) { prefix = "{roost:\(cluster)}:" }

    /// The stream of entries.
    package var log: String { prefix + "r" }
    /// The head of the log with its epoch, and the heads of older epochs.
    package var head: String { prefix + "m" }
    /// The channel on which entries and beats are published.
    package var channel: String { prefix + "c" }
    /// The channel of messages to one hub.
    package func channel(of hub: String) -> String { prefix + "n:" + hub }
    /// The lease on a hub's name.
    package func lease(of hub: String) -> String { prefix + "l:" + hub }
    /// A key and a channel that are never written; used to test permissions.
    package var nothing: String { prefix + "doctor" }
    /// Matches all of them, for operators.
    package var pattern: String { prefix + "*" }

    /// The index of the streams that hubs share: their names, and the length of each log.
    package var streams: String { prefix + "s" }
    /// The log of one of these streams.
    package func streamLog(_ id: String) -> String { "\(streams):\(id)" }
    /// The epoch of the streams, and their number of writes.
    package var streamsHead: String { prefix + "sm" }
    /// The channel on which hubs publish changes of streams.
    package var streamsChannel: String { prefix + "sc" }
}
