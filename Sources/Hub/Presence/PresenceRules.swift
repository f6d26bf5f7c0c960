package import Wire

/// How presence is kept and told.
package struct PresenceRules: Sendable {
    /// How long who is cut off counts as present; for some topics otherwise, the first pattern that fits counts.
    package var windows = GracePeriods()
    package var topics: [(pattern: TopicPattern, windows: GracePeriods)] = []
    /// Members and bytes of a channel's list, and bytes of all lists. Whoever comes when it is full is counted and not
    /// listed.
    package var listedMembers = 10_000
    package var listedBytes = 1_000_000
    package var totalBytes = 268_435_456
    /// Bytes of what one member says of itself: a change of it, which holds it twice, is to fit a message of 1 MiB.
    package var payloadBytes = 500_000
    /// Changes of channels with so many members or watchers are told together: the first at once, then at most one
    /// difference in so many milliseconds (0: every change by itself).
    package var mergedFrom = 32
    package var mergeInterval: Int64 = 100
    /// Milliseconds between two counts for those who asked for counts alone.
    package var occupancyInterval: Int64 = 1000
    /// Milliseconds that a client which joined again has for tracking again, where only that tells who it is.
    package var trackingTime: Int64 = 5000

    package init() {}

    /// Whoever is cut off is gone, and every change is told by itself.
    package static var plain: PresenceRules {
        var rules = PresenceRules()
        rules.windows = .none
        rules.mergeInterval = 0
        return rules
    }

    package func windows(of channel: ChannelKey) -> GracePeriods {
        guard !topics.isEmpty else { return windows }
        return topics.first { $0.pattern.matches(channel.name) }?.windows ?? windows
    }
}

/// How long a member that was cut off counts as present, in milliseconds, by the last state of its app.
package struct GracePeriods: Sendable, Equatable {
    package var active: Int64
    package var inactive: Int64
    package var background: Int64

    package init(active: Int64 = 2000, inactive: Int64 = 12_000, background: Int64 = 20_000) {
        self.active = active
        self.inactive = inactive
        self.background = background
    }

    /// Whoever is cut off is gone.
    package static let none = GracePeriods(active: 0, inactive: 0, background: 0)

    package subscript(state: ReportedAppState?) -> Int64 {
        switch state ?? .active {
        case .active: active
        case .inactive: inactive
        case .background: background
        }
    }
}
