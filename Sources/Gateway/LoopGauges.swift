import Synchronization

/// A loop's figures for the operator, published once a second so that reading them costs the loop nothing.
final class LoopGauges: Sendable {
    private let published = Mutex(LoopFigures())
    /// Up to date at any moment, because a drain ends by it.
    let connections = Atomic<Int>(0)
    /// Grows once a second while the loop turns.
    let beats = Atomic<Int>(0)

    func publish(_ loop: EventLoop) {
        beats.add(1, ordering: .relaxed)
        let figures = LoopFigures(of: loop)
        published.withLock { $0 = figures }
    }

    var figures: LoopFigures {
        var figures = published.withLock { $0 }
        figures.connections = connections.load(ordering: .relaxed)
        return figures
    }
}
