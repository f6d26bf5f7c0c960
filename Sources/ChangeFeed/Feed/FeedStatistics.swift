/// Counters since the feed was made.
package struct FeedStatistics: Sendable, Equatable {
    package var changes = 0
    /// Windows read, empty ones too.
    package var polls = 0
    package var rings = 0
    package var dozes = 0
    /// Rows nobody rang for; anything but 0 is a bug worth reporting.
    package var missedRings = 0
    package var connections = 0
    /// Changes of tables that are not watched any more.
    package var orphans = 0
    package var pruned = 0

    /// Readings of what members missed, each for all who waited.
    package var recoveryReads = 0

    package init() {}
}
