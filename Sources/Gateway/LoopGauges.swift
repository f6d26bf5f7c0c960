import Synchronization

/// A loop's figures for the operator, published once a second so that reading them costs the loop nothing.
final class LoopGauges: Sendable {
    private let published = Mutex(LoopFigures())
    /// Up to date at any moment, because a drain ends by it.
    let connections = Atomic<Int>(0)
    /// Only the loop counts; others read `figures`.
    nonisolated(unsafe) var malformed = 0

    func publish(_ loop: EventLoop) {
        let figures = LoopFigures(
            channels: loop.hub.channelCount,
            framesOut: loop.delivery.counters.frames,
            bytesOut: loop.delivery.counters.bytes, writes: loop.delivery.counters.writes,
            slowReaders: loop.delivery.counters.overflows, malformedFrames: malformed)
        published.withLock { $0 = figures }
    }

    var figures: LoopFigures {
        var figures = published.withLock { $0 }
        figures.connections = connections.load(ordering: .relaxed)
        return figures
    }
}

/// What one loop has done and holds.
package struct LoopFigures: Sendable {
    package var connections = 0
    package var channels = 0
    package var framesOut = 0
    package var bytesOut = 0
    package var writes = 0
    package var slowReaders = 0
    package var malformedFrames = 0
}
