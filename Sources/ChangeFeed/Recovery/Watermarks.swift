import Postgres

/// Marks, and the snapshot that each of them stands for: how far the feed had handed changes on.
///
/// Loops and sessions remember marks, which are numbers; only here, on the feed's thread, does each have a snapshot.
package struct Watermarks: Sendable {
    /// Minimum time between two marks.
    package static let spacing = Duration.milliseconds(20)
    /// Time that a mark is kept without a known user: it may be on its way to a loop, and a client that turns out to have
    /// ignored what it was sent goes back to where it joined.
    package var grace = Duration.seconds(10)
    /// Above this count, every second entry of the older half is dropped: a client with a dropped mark continues at the one
    /// before.
    private static let capacity = 16_384

    private struct Entry: Sendable {
        let mark: Int
        var snapshot: Snapshot
        let at: ContinuousClock.Instant
        /// The value of `changes` at the mark.
        let changes: Int
    }

    private var entries: [Entry] = []
    /// True if something was handed on since the last mark.
    private var isDue = false
    /// Total number of changes handed on.
    private var changes = 0

    package init() {}

    package var latest: Int { entries.last?.mark ?? 0 }
    package var count: Int { entries.count }

    /// Requests a mark at the end of the window.
    package mutating func handedOn(_ count: Int = 0) {
        isDue = true
        changes += count
    }

    /// Approximate number of changes handed on since a mark; nil if no longer known.
    func changes(since mark: Int) -> Int? {
        let place = entryIndex(after: mark)
        return place == 0 ? nil : changes - entries[place - 1].changes
    }

    /// A window ended here.
    ///
    /// - Parameter oldest: the oldest mark that must be kept.
    /// - Returns: the new mark, if one is due.
    package mutating func windowEnded(at snapshot: Snapshot, oldest: Int, now: ContinuousClock.Instant) -> Int? {
        guard isDue, now - (entries.last?.at ?? now - Self.spacing) >= Self.spacing else { return nil }
        isDue = false
        let mark = latest + 1
        pruneEntries(below: oldest, now)
        entries.append(Entry(mark: mark, snapshot: snapshot, at: now, changes: changes))
        if entries.count > Self.capacity { thinOut() }
        return mark
    }

    private mutating func pruneEntries(below oldest: Int, _ now: ContinuousClock.Instant) {
        // The entry at or before `oldest` is needed: it stands in for marks that were thinned out.
        let needed = max(0, entryIndex(after: oldest) - 1)
        let dropped = entries.prefix(needed).firstIndex { now - $0.at < grace } ?? needed
        if dropped > 0 { entries.removeFirst(dropped) }
    }

    private mutating func thinOut() {
        let half = entries.count / 2
        entries =
            entries.prefix(half).enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
            + entries.dropFirst(half)
    }

    /// - Returns: nil for a mark that is no longer known.
    package func snapshot(at mark: Int) -> Snapshot? {
        let place = entryIndex(after: mark)
        return place == 0 ? nil : entries[place - 1].snapshot
    }

    /// The index of the first entry with a later mark.
    private func entryIndex(after mark: Int) -> Int {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].mark <= mark { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The feed has connected and continues at `start`.
    ///
    /// A server that crashed or was promoted may have lost transactions and may reuse their ids, so that an earlier
    /// snapshot counts as finished what has yet to happen. The stored cursor is part of the server's own history, and so is
    /// every snapshot that precedes it. Marks after it are moved back to it: the changes in between come again. These are
    /// so few that an unchanged server is not treated differently; a crash from which the server recovered by itself could
    /// not be detected reliably anyway.
    ///
    /// On another history, as of a restored dump, no earlier snapshot means anything: all clients with a mark continue at
    /// `start`, before which nothing of the new history was sent.
    package mutating func connectionOpened(at start: Snapshot, isSameHistory: Bool, now: ContinuousClock.Instant) {
        if entries.isEmpty { entries = [Entry(mark: 0, snapshot: start, at: now, changes: changes)] }
        for index in entries.indices where !isSameHistory || !entries[index].snapshot.precedes(start) {
            entries[index].snapshot = start
        }
    }
}

/// Decides which loops are told of a mark, and when.
struct WatermarkAudience {
    private struct Loop {
        /// True if it was handed changes since it was last told of a mark.
        var isBehind = false
        var heardAt: ContinuousClock.Instant?
    }

    /// Interval at which a loop is told of marks that cover nothing of its own.
    private static let leisure = Duration.seconds(1)
    private var loops: [Loop]

    init(loops count: Int) { loops = Array(repeating: Loop(), count: count) }

    mutating func recordDelivery(to loop: Int) { loops[loop].isBehind = true }

    mutating func loops(toHearOf mark: Int, at now: ContinuousClock.Instant) -> [Int] {
        let listening = loops.indices.filter { index in
            loops[index].isBehind || loops[index].heardAt.map { now - $0 >= Self.leisure } ?? true
        }
        for index in listening { loops[index] = Loop(isBehind: false, heardAt: now) }
        return listening
    }
}
