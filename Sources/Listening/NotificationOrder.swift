/// Gives each notification the same number on every hub that receives it, so that channels with history store it once.
///
/// Postgres sends all listeners of a database the same notifications in the same order, that of their commits. They
/// lack a common starting point, as each began to listen at another time. So every hub that starts listening sends a
/// mark on a dedicated channel, and all hubs count from the latest mark, separately per channel: mark, channel and
/// count identify a notification everywhere.
///
/// - A hub has begun when its own mark comes back. Earlier notifications count as missed: the hub could not number them
///   as others do, and its members are told of a gap at that moment anyway.
/// - A mark counts once. Any role that may NOTIFY can forge marks: that leads to other numbers, but the same ones on
///   every hub.
///
/// Pure.
package struct NotificationOrder {
    /// The channel of marks.
    package static let channel = "roost_order"
    /// The number of marks that are remembered.
    private static let mostSeen = 1_024
    private static let longestMark = 64

    /// The mark that this hub sent and waits for.
    package let own: String
    private var mark: String?
    private var counts: [String: Int] = [:]
    private var seen: [String] = []

    /// - Parameter own: a random mark, different for each connection.
    package init(own: String) { self.own = own }

    /// Whether this hub numbers notifications.
    package var hasBegun: Bool { mark != nil }

    /// - Returns: true if this mark makes the hub begin.
    package mutating func received(mark: String) -> Bool {
        guard hasBegun || mark == own else { return false }
        guard mark.utf8.count <= Self.longestMark, !seen.contains(mark) else { return false }
        if seen.count == Self.mostSeen { seen.removeFirst() }
        seen.append(mark)
        self.mark = mark
        counts = [:]
        return mark == own
    }

    /// The number of the next notification; nil before this hub has begun.
    package mutating func nextNumber(on channel: String) -> String? {
        guard let mark else { return nil }
        let count = (counts[channel] ?? 0) + 1
        counts[channel] = count
        return "notification \(mark) \(channel) \(count)"
    }
}
