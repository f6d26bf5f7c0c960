package import Hub
import Synchronization
package import Wire

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
            coalescedFrames: loop.delivery.counters.coalesced, slowReadersWrittenOff: loop.delivery.counters.writtenOff,
            slowReadersClosed: loop.delivery.counters.closed, slowReadersCut: loop.delivery.counters.cut,
            heldMilliseconds: Int(loop.delivery.laggards.held), malformedFrames: malformed,
            refused: loop.hub.refused, slowed: loop.hub.slowed)
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
    /// Presence frames that slow readers were spared.
    package var coalescedFrames = 0
    /// Slow readers that the feed stopped waiting for.
    package var slowReadersWrittenOff = 0
    /// Sockets closed at their cap.
    package var slowReadersClosed = 0
    /// Sockets that did not take a close frame in time.
    package var slowReadersCut = 0
    /// Time in which row changes were held back for slow readers.
    package var heldMilliseconds = 0
    package var malformedFrames = 0
    /// By limit: what was answered with an error for it.
    package var refused: [Limit: Int] = [:]
    /// By rate: how often a socket was left unread for a moment.
    package var slowed: [Pace: Int] = [:]
}
