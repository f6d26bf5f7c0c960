/// What a hub has done since it began, for the metrics: plain integers, which its loop alone writes.
package struct HubCounters: Sendable {
    /// Joins that were answered with yes, and with no.
    package internal(set) var joins = 0
    package internal(set) var joinsRefused = 0
    /// Sockets in channels, now.
    package internal(set) var memberships = 0
    /// Members that asked for what they missed, by what they were answered: `resumed`, or why not.
    package internal(set) var recoveries: [String: Int] = [:]
    /// Members of presence that came and went; the difference, over all loops, is who is there.
    package internal(set) var presenceJoins = 0
    package internal(set) var presenceLeaves = 0
    /// Members that were cut off and back within their window.
    package internal(set) var presenceLeavesAvoided = 0
    /// Users whose typing was told of.
    package internal(set) var typingStarts = 0

    package init() {}

    package static func + (one: HubCounters, other: HubCounters) -> HubCounters {
        var sum = one
        sum.joins += other.joins
        sum.joinsRefused += other.joinsRefused
        sum.memberships += other.memberships
        sum.recoveries.merge(other.recoveries, uniquingKeysWith: +)
        sum.presenceJoins += other.presenceJoins
        sum.presenceLeaves += other.presenceLeaves
        sum.presenceLeavesAvoided += other.presenceLeavesAvoided
        sum.typingStarts += other.typingStarts
        return sum
    }
}
