/// What batches of work have cost: one row that ends the session it is worked on must not end every session for ever.
///
/// A batch that cost its session twice is done again row by row, and a row that did so is hopeless: its owner does without what
/// costs. Outlives sessions; confined to one thread.
package struct BatchTrials<Place: Equatable> {
    private var place: Place?
    /// How many sessions ended while what begins at `place` was worked on.
    private var losses = 0
    /// How many rows are done one by one from here on.
    private var singles = 0
    private let mostLosses = 2

    package init() {}

    /// How many rows the next batch may have; nil where that is as usual.
    package var mostRows: Int? { singles > 0 ? 1 : nil }

    /// Whether the row that comes next has cost its session twice, by itself.
    package var isHopeless: Bool { singles > 0 && losses >= mostLosses }

    /// A session ended while a batch was worked on. It may end for any reason; twice at the same place is no chance.
    ///
    /// - Parameter place: where the batch begins.
    package mutating func sessionEnded(at place: Place, rows: Int) {
        losses = place == self.place ? losses + 1 : 1
        self.place = place
        guard losses >= mostLosses, singles == 0 else { return }
        singles = rows
        // The first of them may be innocent.
        losses = 0
    }

    package mutating func done(rows: Int) {
        place = nil
        losses = 0
        singles = max(0, singles - rows)
    }
}
