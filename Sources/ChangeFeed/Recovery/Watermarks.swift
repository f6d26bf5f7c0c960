import Postgres

/// Marks, and the snapshot that each of them stands for: how far the feed had handed on.
///
/// Loops and sessions remember marks, which are numbers; only here, on the feed's thread, is there a snapshot to each.
package struct Watermarks: Sendable {
    /// Marks are no closer than this.
    package static let spacing = Duration.milliseconds(20)
    /// For how long a mark is kept that nobody is known to remember: it may be on its way to a loop, and where a client
    /// turns out to have ignored what it was sent, it goes back to where it joined.
    package var grace = Duration.seconds(10)
    /// Above it the older half keeps every second one: who remembers another goes on at the one before.
    private static let capacity = 16_384

    private struct Entry: Sendable {
        let mark: Int
        var snapshot: Snapshot
        let at: ContinuousClock.Instant
        /// What `changes` was.
        let changes: Int
    }

    private var entries: [Entry] = []
    /// Something was handed on since the last mark.
    private var isDue = false
    /// Handed on in all.
    private var changes = 0

    package init() {}

    package var latest: Int { entries.last?.mark ?? 0 }
    package var count: Int { entries.count }

    /// There is something to be marked at the end of the window.
    package mutating func handedOn(_ count: Int = 0) {
        isDue = true
        changes += count
    }

    /// About how many changes were handed on since a mark; nil where it is not known any more.
    func changes(since mark: Int) -> Int? {
        let place = place(after: mark)
        return place == 0 ? nil : changes - entries[place - 1].changes
    }

    /// A window ended here.
    ///
    /// - Parameter oldest: the mark from where on they are to be kept.
    /// - Returns: the new mark, if it is time for one.
    package mutating func windowEnded(at snapshot: Snapshot, oldest: Int, now: ContinuousClock.Instant) -> Int? {
        guard isDue, now - (entries.last?.at ?? now - Self.spacing) >= Self.spacing else { return nil }
        isDue = false
        let mark = latest + 1
        prune(below: oldest, now)
        entries.append(Entry(mark: mark, snapshot: snapshot, at: now, changes: changes))
        if entries.count > Self.capacity { thin() }
        return mark
    }

    private mutating func prune(below oldest: Int, _ now: ContinuousClock.Instant) {
        // The one at or before `oldest` is needed: a mark that was thinned out goes by it.
        let needed = max(0, place(after: oldest) - 1)
        let dropped = entries.prefix(needed).firstIndex { now - $0.at < grace } ?? needed
        if dropped > 0 { entries.removeFirst(dropped) }
    }

    private mutating func thin() {
        let half = entries.count / 2
        entries =
            entries.prefix(half).enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
            + entries.dropFirst(half)
    }

    /// - Returns: nil for a mark that is no longer known.
    package func snapshot(at mark: Int) -> Snapshot? {
        let place = place(after: mark)
        return place == 0 ? nil : entries[place - 1].snapshot
    }

    /// The index of the first entry with a later mark.
    private func place(after mark: Int) -> Int {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].mark <= mark { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The feed has connected and goes on at `start`.
    ///
    /// A server that crashed, or that was promoted, may have forgotten transactions and give their ids to others, so that
    /// a snapshot of before calls finished what has yet to happen. The stored cursor is part of the server's own history,
    /// and so is every snapshot that precedes it. Marks beyond it are taken back to it: what came in between comes again.
    /// That is so little that an unchanged server is not told apart; a crash that the server recovered from by itself
    /// could not be told for certain anyway.
    ///
    /// On another history, as of a dump that was restored, no snapshot of before means anything: all who remember a mark
    /// go on at `start`, behind which nothing of the new history was told.
    package mutating func connected(at start: Snapshot, isSameHistory: Bool, now: ContinuousClock.Instant) {
        if entries.isEmpty { entries = [Entry(mark: 0, snapshot: start, at: now, changes: changes)] }
        for index in entries.indices where !isSameHistory || !entries[index].snapshot.precedes(start) {
            entries[index].snapshot = start
        }
    }
}

/// Which loops are to hear of a mark, and when.
struct WatermarkAudience {
    private struct Loop {
        /// It was handed changes since it last heard of a mark.
        var isBehind = false
        var heardAt: ContinuousClock.Instant?
    }

    /// How often a loop hears of marks that cover nothing of its own.
    private static let leisure = Duration.seconds(1)
    private var loops: [Loop]

    init(loops count: Int) { loops = Array(repeating: Loop(), count: count) }

    mutating func delivered(to loop: Int) { loops[loop].isBehind = true }

    mutating func loops(toHearOf mark: Int, at now: ContinuousClock.Instant) -> [Int] {
        let listening = loops.indices.filter { index in
            loops[index].isBehind || loops[index].heardAt.map { now - $0 >= Self.leisure } ?? true
        }
        for index in listening { loops[index] = Loop(isBehind: false, heardAt: now) }
        return listening
    }
}
