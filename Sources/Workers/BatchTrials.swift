/// Tracks the failures of batches of work: a row that ends its session whenever it is processed, or that the server
/// refuses for whatever reason, must not hold up the others forever.
///
/// A batch that ended its session twice is repeated row by row, and a row that did so is hopeless: its owner skips the
/// costly part. An error by which Postgres means that retrying helps (a lock, a full disk) is believed for a while: it
/// counts once it has recurred for `patience`. Outlives sessions; confined to one thread. Time is passed in.
package struct BatchTrials<Place: Equatable> {
    package typealias Instant = ContinuousClock.Instant

    private var place: Place?
    /// The number of failures at `place`, and since when.
    private var losses = 0
    private var since: Instant?
    /// Whether the last failure proves that the work is at fault, not the moment.
    private var isCertain = false
    /// The number of rows still to be processed one by one.
    private var singles = 0
    private let patience: Duration
    private let mostLosses = 2

    /// - Parameter patience: with errors that may pass.
    package init(patience: Duration = .seconds(15)) { self.patience = patience }

    /// The limit of rows in the next batch; nil for the usual one.
    package var mostRows: Int? { singles > 0 ? 1 : nil }

    /// Whether the next row has failed twice on its own.
    package var isHopeless: Bool { singles > 0 && isCertain }

    /// A batch failed for a reason that may be its own. One failure may be chance; two at the same place are not.
    ///
    /// - Parameters:
    ///   - place: where the batch begins.
    ///   - mayPass: whether the error says that retrying helps.
    package mutating func batchFailed(at place: Place, rows: Int, mayPass: Bool = false, at now: Instant) {
        if place != self.place || losses == 0 { (losses, since) = (0, now) }
        self.place = place
        losses += 1
        isCertain = losses >= mostLosses && (!mayPass || since.map { now - $0 >= patience } ?? false)
        guard isCertain, singles == 0 else { return }
        singles = rows
        // The first row may be innocent.
        (losses, isCertain) = (0, false)
    }

    package mutating func batchSucceeded(rows: Int) {
        place = nil
        (losses, isCertain) = (0, false)
        singles = max(0, singles - rows)
    }
}

/// A refusal that recurs at the same place, over any length of time. Outlives sessions; confined to one thread. Time is passed in.
package struct RepeatedRefusal<Place: Equatable> {
    package typealias Instant = ContinuousClock.Instant

    private var place: Place?
    private var count = 0
    private var since: Instant?
    private let patience: Duration
    private let least = 3

    /// - Parameter patience: how long the refusal must recur to count as lasting.
    package init(patience: Duration) { self.patience = patience }

    package mutating func requestRefused(at place: Place, at now: Instant) {
        if place != self.place { (count, since) = (0, now) }
        self.place = place
        count += 1
    }

    /// Whether the refusal occurred several times, over the whole time of patience.
    package func isLasting(at now: Instant) -> Bool {
        count >= least && since.map { now - $0 >= patience } ?? false
    }

    package mutating func requestPassed() { (place, count) = (nil, 0) }
}
