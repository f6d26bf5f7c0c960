import CWebSockets
package import Hub
package import Wire

/// What loops have done and hold: one loop's, or the sum of several.
package struct LoopFigures: Sendable {
    /// When one loop published them, in nanoseconds of a clock that never goes back; of a sum, the latest.
    package var publishedAt: UInt64 = 0
    package var connections = 0
    package var channels = 0
    /// Groups of subscribers to row changes.
    package var subscriptions = 0
    package var hub = HubCounters()
    package var accepted = 0
    package var connectionsRefused: [String: Int] = [:]
    /// By close code; nil for those that no standard names.
    package var connectionsClosed: [UInt16?: Int] = [:]
    /// WebSockets and requests that were ended over `limits.unfinished_bytes`.
    package var unfinishedRefused = 0
    package var framesIn = 0
    package var bytesIn = 0
    package var framesOut = 0
    package var bytesOut = 0
    package var writes = 0
    /// Bytes that wait for sockets to take them.
    package var pendingBytes = 0
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
    package var lag = Histogram.ofLatency
    package var turns = Histogram.ofTurns
    package var stalls = 0
    /// Loops that send in batches by io_uring.
    package var batching = 0

    package init() {}

    package mutating func add(_ other: LoopFigures) {
        publishedAt = max(publishedAt, other.publishedAt)
        connections += other.connections
        channels += other.channels
        subscriptions += other.subscriptions
        hub = hub + other.hub
        accepted += other.accepted
        connectionsRefused.merge(other.connectionsRefused, uniquingKeysWith: +)
        connectionsClosed.merge(other.connectionsClosed, uniquingKeysWith: +)
        unfinishedRefused += other.unfinishedRefused
        framesIn += other.framesIn
        bytesIn += other.bytesIn
        framesOut += other.framesOut
        bytesOut += other.bytesOut
        writes += other.writes
        pendingBytes += other.pendingBytes
        coalescedFrames += other.coalescedFrames
        slowReadersWrittenOff += other.slowReadersWrittenOff
        slowReadersClosed += other.slowReadersClosed
        slowReadersCut += other.slowReadersCut
        heldMilliseconds += other.heldMilliseconds
        malformedFrames += other.malformedFrames
        refused.merge(other.refused, uniquingKeysWith: +)
        slowed.merge(other.slowed, uniquingKeysWith: +)
        lag.add(other.lag)
        turns.add(other.turns)
        stalls += other.stalls
        batching += other.batching
    }
}

extension LoopFigures {
    init(of loop: EventLoop) {
        let (counters, sent) = (loop.counters, loop.delivery.counters)
        publishedAt = uv_hrtime()
        channels = loop.hub.channelCount
        subscriptions = loop.hub.groupCount
        hub = loop.hub.counters
        accepted = counters.accepted
        // All of them: what is 0 until the first time cannot be missed by whoever watches how it grows.
        connectionsRefused = Dictionary(
            uniqueKeysWithValues: Door.Reason.allCases.map { ($0.rawValue, counters.refused[$0, default: 0]) })
        connectionsClosed = counters.closed
        unfinishedRefused = counters.unfinishedRefused
        framesIn = counters.framesReceived
        bytesIn = counters.bytesReceived
        framesOut = sent.frames
        bytesOut = sent.bytes
        writes = sent.writes
        pendingBytes = loop.delivery.pendingBytes
        coalescedFrames = sent.coalesced
        slowReadersWrittenOff = sent.writtenOff
        slowReadersClosed = sent.closed
        slowReadersCut = sent.cut
        heldMilliseconds = Int(loop.delivery.laggards.held)
        malformedFrames = counters.malformed
        refused = loop.hub.refused
        slowed = loop.hub.slowed
        lag = counters.lag
        turns = counters.turns
        stalls = counters.stalls
        batching = loop.delivery.ring == nil ? 0 : 1
    }
}
