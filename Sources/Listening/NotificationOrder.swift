/// Gives each notification the same number on every hub that hears it, so that channels with history keep it once.
///
/// Postgres brings all listeners of a database the same notifications in the same order, that of their commits. What it lacks is a beginning
/// that they share, as each began to listen when it did. So every hub that begins sends a mark on a channel of its own, and all count
/// from the last mark on, each channel for itself: the mark, the channel and the count name a notification everywhere.
///
/// - A hub has begun when its own mark comes back. What came before counts as not heard: nobody there could number it as others do,
///   and its members are told of a gap at that moment anyway.
/// - A mark counts once. Whoever may NOTIFY can make marks up: that leads to other numbers, everywhere the same ones.
///
/// Pure.
package struct NotificationOrder {
    /// The channel of marks.
    package static let channel = "roost_order"
    /// So many marks are remembered.
    private static let mostSeen = 1_024
    private static let longestMark = 64

    /// The mark that this hub waits for.
    package let own: String
    private var mark: String?
    private var counts: [String: Int] = [:]
    private var seen: [String] = []

    /// - Parameter own: at random, and another one for each connection.
    package init(own: String) { self.own = own }

    /// Whether this hub has begun.
    package var hasBegun: Bool { mark != nil }

    /// - Returns: whether this hub has begun with it.
    package mutating func came(mark: String) -> Bool {
        guard hasBegun || mark == own else { return false }
        guard mark.utf8.count <= Self.longestMark, !seen.contains(mark) else { return false }
        if seen.count == Self.mostSeen { seen.removeFirst() }
        seen.append(mark)
        self.mark = mark
        counts = [:]
        return mark == own
    }

    /// The next notification's number; nil before this hub has begun.
    package mutating func next(on channel: String) -> String? {
        guard let mark else { return nil }
        let count = (counts[channel] ?? 0) + 1
        counts[channel] = count
        return "notification \(mark) \(channel) \(count)"
    }
}
