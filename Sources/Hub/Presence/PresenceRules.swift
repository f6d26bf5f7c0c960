package import Wire

/// Rules for keeping and announcing presence.
package struct PresenceRules: Sendable {
    /// How long a member that is cut off counts as present; for topics with rules of their own, the first matching
    /// pattern applies.
    package var windows = GracePeriods()
    package var topics: [(pattern: TopicPattern, windows: GracePeriods)] = []
    /// Members and bytes of a channel's list, and bytes of all lists. Members that come when a list is full are counted
    /// but not listed.
    package var listedMembers = 10_000
    package var listedBytes = 1_000_000
    package var totalBytes = 268_435_456
    /// Bytes of one member's payload: a change, which contains it twice, has to fit a message of 1 MiB.
    package var payloadBytes = 500_000
    /// Changes in channels with this many members or watchers are merged: the first is sent at once, then at most one
    /// diff per this many milliseconds (0: every change separately).
    package var mergedFrom = 32
    package var mergeInterval: Int64 = 100
    /// Milliseconds between two counts for members that asked only for counts.
    package var occupancyInterval: Int64 = 1000
    /// Milliseconds that a rejoined client has to track again, if only that tells which presence is its own.
    package var trackingTime: Int64 = 5000

    package init() {}

    /// Members that are cut off are gone, and every change is sent separately.
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

/// How long a member that was cut off counts as present, in milliseconds, by the last known state of its app.
package struct GracePeriods: Sendable, Equatable {
    package var active: Int64
    package var inactive: Int64
    package var background: Int64

    package init(active: Int64 = 2000, inactive: Int64 = 12_000, background: Int64 = 20_000) {
        self.active = active
        self.inactive = inactive
        self.background = background
    }

    /// Members that are cut off are gone at once.
    package static let none = GracePeriods(active: 0, inactive: 0, background: 0)

    package subscript(state: ReportedAppState?) -> Int64 {
        switch state ?? .active {
        case .active: active
        case .inactive: inactive
        case .background: background
        }
    }
}
