/// Which of the places that the feed reached may be stored: those behind which all is settled that was observed.
package struct StorablePlaces: Sendable {
    /// A place between two windows.
    package struct Place: Sendable {
        package let cursor: Snapshot
        /// How many changes had been handed on there, see `DeliveredChanges.stored`.
        package let covered: Int

        package init(cursor: Snapshot, covered: Int) {
            self.cursor = cursor
            self.covered = covered
        }
    }

    private var waiting: [(taken: Int, place: Place)] = []
    private var settledPlace: Place?
    /// Beyond that the newest places are one.
    private static let most = 1000

    package init() {}

    /// A window ended, or reading begins here.
    package mutating func reached(_ place: Place, taken: Int) {
        if waiting.count >= Self.most { waiting.removeLast() }
        waiting.append((taken, place))
    }

    /// Reading begins somewhere else.
    package mutating func startAnew(at place: Place?) {
        waiting.removeAll()
        settledPlace = place
    }

    package var isWaiting: Bool { !waiting.isEmpty }

    /// The newest place behind which all is settled; nil where there is none.
    package mutating func storable(settled: Int) -> Place? {
        if let last = waiting.lastIndex(where: { $0.taken <= settled }) {
            settledPlace = waiting[last].place
            waiting.removeSubrange(...last)
        }
        return settledPlace
    }
}
