/// What storing has cost: a row whose JSON ends the session that makes it must not end every session for ever.
///
/// A batch that cost its session twice is read again row by row, and a row that did so is stored as bare texts, which run no
/// code of its types. Outlives sessions; confined to the capture's thread.
package struct StoreTrials {
    private var place: CapturePosition?
    /// How many sessions ended while what begins at `place` was stored.
    private var losses = 0
    /// How many rows are read one by one from here on.
    private var singles = 0

    /// A session may end for any reason; twice at the same place is no chance.
    private static let mostLosses = 2

    package init() {}

    /// How many rows the next batch may have; nil where that is as usual.
    package var mostRows: Int? { singles > 0 ? 1 : nil }

    /// Whether the row that comes next has cost its session already, by itself.
    package var isBare: Bool { singles > 0 && losses >= Self.mostLosses }

    /// A session ended while a batch was stored.
    ///
    /// - Parameter place: where the batch begins.
    package mutating func sessionEnded(at place: CapturePosition, rows: Int) {
        losses = place == self.place ? losses + 1 : 1
        self.place = place
        guard losses >= Self.mostLosses, singles == 0 else { return }
        singles = rows
        // The first of them may be innocent.
        losses = 0
    }

    package mutating func stored(rows: Int) {
        place = nil
        losses = 0
        singles = max(0, singles - rows)
    }
}
