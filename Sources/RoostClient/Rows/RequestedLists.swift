package import Wire

/// The lists of rows that a channel's sequences show: which of them a join has read, and the hub's reports on them.
///
/// A part of `RequestedChanges`. Pure: it has no clock and sends nothing.
package struct RequestedLists {
    private struct Item {
        let request: ListRequest
        /// True if the list is complete up to the channel's cursor, so that later changes keep it right.
        var isFilled = false
        /// The cursor of the stored list.
        let stored: String?
    }

    /// The result of reading a list.
    package struct Answer: Sendable {
        /// The place of the last row as a JSON object, if more rows follow.
        package let next: JSON?
        /// The reason why the rows could not be read.
        package let problem: String?

        package init(next: JSON?, problem: String?) {
            self.next = next
            self.problem = problem
        }
    }

    /// The most lists that the hub reads in one join.
    static let most = 10

    private var items: [SubscriptionID: Item] = [:]
    /// The lists of the last join, in its order.
    private var asked: [SubscriptionID] = []
    /// The lists whose rows the hub is sending, in the order of its report.
    private(set) var reading: [SubscriptionID] = []
    /// The number of consecutive failed readings.
    private var failures = 0

    var isEmpty: Bool { items.isEmpty }
    var count: Int { items.count }

    /// - Returns: false if the limit is reached.
    mutating func addList(_ subscription: SubscriptionID, _ request: ListRequest, stored: String?) -> Bool {
        guard items.count < Self.most else { return false }
        items[subscription] = Item(request: request, isFilled: false, stored: stored)
        return true
    }

    mutating func removeList(_ subscription: SubscriptionID) { items[subscription] = nil }

    mutating func removeAll() { self = RequestedLists() }

    /// Makes the next join read a list that lacks rows which no change brings.
    ///
    /// - Returns: false if it is being read already, or is about to be.
    mutating func markForReading(_ subscription: SubscriptionID) -> Bool {
        guard items[subscription]?.isFilled == true else { return false }
        items[subscription]?.isFilled = false
        return true
    }

    // MARK: Joining

    /// The position from which all lists of a channel that was never joined can continue: the one at which all of them
    /// were stored.
    mutating func takeStoredCursor() -> String? {
        let cursors = Set(items.values.map(\.stored))
        guard cursors.count == 1, let cursor = cursors.first ?? nil else { return nil }
        for subscription in items.keys { items[subscription]?.isFilled = true }
        return cursor
    }

    /// The entries of the join that is about to be sent. With a cursor, filled lists are read only if it is too old.
    mutating func beginJoin(hasCursor: Bool) -> [[UInt8]] {
        asked = items.keys.sorted()
        reading = []
        return asked.compactMap { subscription in
            items[subscription].map { $0.request.json(isFresh: hasCursor && !$0.isFilled) }
        }
    }

    /// Notes the reply to a join.
    ///
    /// - Parameter isResumed: only changes arrive, and lists that are not filled.
    mutating func joinSucceeded(isResumed: Bool) {
        if !isResumed { for subscription in asked { items[subscription]?.isFilled = false } }
        reading = asked.filter { items[$0]?.isFilled != true }
    }

    /// Whether some list still waits for its rows.
    var lacksSome: Bool { items.contains { !$0.value.isFilled && !asked.contains($0.key) } }

    // MARK: Frames of the hub

    /// Ends the reading: all rows have arrived.
    ///
    /// - Parameter report: the hub's report, with an entry for each list that was read.
    mutating func endReading(_ report: JSON) -> [SubscriptionID: Answer] {
        let entries = report["rows"]?.elements ?? []
        var answers: [SubscriptionID: Answer] = [:]
        for (place, subscription) in reading.enumerated() {
            let entry = place < entries.count ? entries[place] : nil
            let problem = entry.map { $0["error"]?.string } ?? "The hub has read no rows for this list."
            items[subscription]?.isFilled = problem == nil
            answers[subscription] = Answer(next: entry?["next"], problem: problem)
        }
        reading = []
        failures = answers.values.contains { $0.problem != nil } ? failures + 1 : 0
        return answers
    }

    /// The changes are live, and lists still wait for their rows: the hub has none for them.
    mutating func giveUp() -> [SubscriptionID: Answer] { reading.isEmpty ? [:] : endReading(.emptyObject) }

    /// The pause before failed readings are repeated: 5 seconds, then twice as long each time, up to 5 minutes.
    var pause: Duration { .seconds(min(300, 5 << min(failures - 1, 6))) }

    /// Marks all lists for reading, after an unknown number of changes was lost.
    mutating func markAllForReading() {
        for subscription in items.keys { items[subscription]?.isFilled = false }
    }

    mutating func channelLost() { reading = [] }
}
