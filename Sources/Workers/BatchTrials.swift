/// What batches of work have cost: one row that ends the session it is worked on, or that the server refuses whatever the reason it
/// gives, must not keep the others for ever.
///
/// A batch that cost its session twice is done again row by row, and a row that did so is hopeless: its owner does without what
/// costs. An error by which Postgres means that asking again helps (a lock, a full disk) is taken at its word for a while: it counts
/// once it has come again for `patience`. Outlives sessions; confined to one thread. Time is passed in.
package struct BatchTrials<Place: Equatable> {
    package typealias Instant = ContinuousClock.Instant

    private var place: Place?
    /// How many times what begins at `place` failed, and since when.
    private var losses = 0
    private var since: Instant?
    /// Whether the last of them shows that it is the work, and not the moment.
    private var isCertain = false
    /// How many rows are done one by one from here on.
    private var singles = 0
    private let patience: Duration
    private let mostLosses = 2

    /// - Parameter patience: with errors that may pass.
    package init(patience: Duration = .seconds(15)) { self.patience = patience }

    /// How many rows the next batch may have; nil where that is as usual.
    package var mostRows: Int? { singles > 0 ? 1 : nil }

    /// Whether the row that comes next has failed twice, by itself.
    package var isHopeless: Bool { singles > 0 && isCertain }

    /// A batch failed, for a reason that may be its own. Once may have any reason; twice at the same place is no chance.
    ///
    /// - Parameters:
    ///   - place: where the batch begins.
    ///   - mayPass: whether the error says that asking again helps.
    package mutating func failed(at place: Place, rows: Int, mayPass: Bool = false, at now: Instant) {
        if place != self.place || losses == 0 { (losses, since) = (0, now) }
        self.place = place
        losses += 1
        isCertain = losses >= mostLosses && (!mayPass || since.map { now - $0 >= patience } ?? false)
        guard isCertain, singles == 0 else { return }
        singles = rows
        // The first of them may be innocent.
        (losses, isCertain) = (0, false)
    }

    package mutating func done(rows: Int) {
        place = nil
        (losses, isCertain) = (0, false)
        singles = max(0, singles - rows)
    }
}

/// A refusal that comes again at the same place, for however long. Outlives sessions; confined to one thread. Time is passed in.
package struct RepeatedRefusal<Place: Equatable> {
    package typealias Instant = ContinuousClock.Instant

    private var place: Place?
    private var count = 0
    private var since: Instant?
    private let patience: Duration
    private let least = 3

    /// - Parameter patience: how long it has to come again to be lasting.
    package init(patience: Duration) { self.patience = patience }

    package mutating func refused(at place: Place, at now: Instant) {
        if place != self.place { (count, since) = (0, now) }
        self.place = place
        count += 1
    }

    /// Whether it came several times, and over all the time of patience.
    package func isLasting(at now: Instant) -> Bool {
        count >= least && since.map { now - $0 >= patience } ?? false
    }

    package mutating func passed() { (place, count) = (nil, 0) }
}
