/// What a book has done since it was made, for the metrics.
package struct ActivityStatistics: Sendable, Equatable {
    /// States that were handed over to be pushed, Disconnected and ends included.
    package internal(set) var pushed = 0
    package internal(set) var shown = 0
    /// States that were not told because they were equal to the last one.
    package internal(set) var suppressed = 0
    /// Pushes that were ready to leave when the app came back.
    package internal(set) var withdrawn = 0
    /// Pushes of which nobody knows whether they arrived: the latest state went again.
    package internal(set) var unanswered = 0
    /// Posts that were not newer than the last, and posts to activities that are not known.
    package internal(set) var stalePosts = 0
    package internal(set) var unknownPosts = 0
    package internal(set) var unsendable = 0

    package init() {}
}
