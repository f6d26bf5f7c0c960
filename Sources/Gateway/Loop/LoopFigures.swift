import CWebSockets
package import Hub
import Synchronization
package import Wire

/// Figures of one loop, or the sum of several.
package struct LoopFigures: Sendable {
    /// When a loop published them, in monotonic nanoseconds; for a sum, the latest.
    package var publishedAt: UInt64 = 0
    package var connections = 0
    package var channels = 0
    /// Groups of subscribers to row changes.
    package var subscriptions = 0
    package var hub = HubCounters()
    package var accepted = 0
    package var connectionsRefused: [String: Int] = [:]
    /// By close code; nil for codes that no standard defines.
    package var connectionsClosed: [UInt16?: Int] = [:]
    /// WebSockets and requests ended because of `limits.unfinished_bytes`.
    package var unfinishedRefused = 0
    /// Clients' connections that are neither WebSockets nor streaming answers.
    package var httpConnections = 0
    /// Such connections that were ended to make room for others.
    package var displaced = 0
    /// Connections closed without an answer, because descriptors ran short or their address had too many.
    package var unheard = 0
    /// Requests refused because their user or address has reached its share.
    package var overShare = 0
    package var framesIn = 0
    package var bytesIn = 0
    package var framesOut = 0
    package var bytesOut = 0
    package var writes = 0
    /// Bytes that wait for sockets to take them.
    package var pendingBytes = 0
    /// Presence and typing frames left out for slow readers.
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
    /// Refusals, by limit.
    package var refused: [Limit: Int] = [:]
    /// How often reading a socket was paused, by rate.
    package var slowed: [Pace: Int] = [:]
    package var lag = Histogram.ofLatency
    package var turns = Histogram.ofTurns
    package var stalls = 0
    /// Loops that send in batches by io_uring.
    package var batching = 0
    /// Current readers of streams.
    package var streamWatchers: [StreamTransport: Int] = [:]
    /// Requests about streams that the policies refused.
    package var streamsForbidden = 0
    /// Current subscriptions without a WebSocket.
    package var eventReaders = 0

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
        httpConnections += other.httpConnections
        displaced += other.displaced
        unheard += other.unheard
        overShare += other.overShare
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
        lag.addCounts(other.lag)
        turns.addCounts(other.turns)
        stalls += other.stalls
        batching += other.batching
        streamWatchers.merge(other.streamWatchers, uniquingKeysWith: +)
        streamsForbidden += other.streamsForbidden
        eventReaders += other.eventReaders
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
        // Includes all reasons: a monitoring system that computes growth would miss the first count of a series that
        // did not start at 0.
        connectionsRefused = Dictionary(
            uniqueKeysWithValues: Admission.Reason.allCases.map {
                ($0.rawValue, loop.admission.refused[$0, default: 0])
            })
        connectionsClosed = counters.closed
        unfinishedRefused = counters.unfinishedRefused
        httpConnections = loop.http.requestCount
        displaced = counters.displaced
        unheard = counters.unheard
        overShare = counters.overShare
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
        heldMilliseconds = Int(loop.delivery.slowReaders.held)
        malformedFrames = counters.malformed
        refused = loop.hub.refused
        slowed = loop.hub.slowed
        lag = counters.lag
        turns = counters.turns
        stalls = counters.stalls
        batching = loop.delivery.ring == nil ? 0 : 1
        streamWatchers = loop.watchersByTransport
        streamsForbidden = counters.streamsForbidden
        eventReaders = loop.router.events.count
    }
}

/// A loop's counts and durations: plain integers that only the loop writes.
struct LoopCounters {
    var accepted = 0
    /// By the code of the close frame; 1006 if there was none (RFC 6455, section 7.4.1), nil for codes that no standard
    /// defines. Otherwise a client could create as many metric series as there are codes.
    private(set) var closed: [UInt16?: Int] = [:]
    /// WebSockets and requests ended because all connections together stored too many unfinished bytes.
    var unfinishedRefused = 0
    /// Connections ended to make room for others.
    var displaced = 0
    /// Connections closed as soon as they were accepted.
    var unheard = 0
    /// Requests over `limits.requests_per_user`, or over the limits on unused tickets.
    var overShare = 0
    var framesReceived = 0
    var bytesReceived = 0
    var malformed = 0
    /// Requests about streams that the policies refused.
    var streamsForbidden = 0
    /// From a row's commit to its hand-over to sockets.
    var lag = Histogram.ofLatency
    /// From the loop's wake-up until it waits again.
    var turns = Histogram.ofTurns
    var stalls = 0
    /// Nil while the loop waits.
    private var turnBegan: UInt64?

    /// Nanoseconds. During a stall, no connection of this loop is served.
    private static let stall: UInt64 = 100_000_000

    mutating func ended(with code: UInt16) { closed[PeerClose.isRegistered(code) ? code : nil, default: 0] += 1 }

    /// True if anything happened since the last turn ended.
    var isInTurn: Bool { turnBegan != nil }

    /// Marks the start of the loop. lws callbacks during setup are not part of a turn, however long the hub's start
    /// took.
    mutating func loopBegins() { turnBegan = nil }

    /// Called before anything else in a turn.
    mutating func turnBegins() {
        if turnBegan == nil { turnBegan = uv_hrtime() }
    }

    /// - Returns: the duration in nanoseconds, if others had to wait for too long.
    mutating func turnEnds() -> UInt64? {
        guard let began = turnBegan else { return nil }
        turnBegan = nil
        let took = uv_hrtime() - began
        turns.recordDuration(nanoseconds: Int64(took))
        guard took > Self.stall else { return nil }
        stalls += 1
        return took
    }

    /// - Parameters: microseconds since 1970.
    mutating func handedOn(committedAtMicroseconds: Int64, at now: Int64) {
        lag.recordDuration(nanoseconds: max(0, now - committedAtMicroseconds) * 1000)
    }
}

/// A loop's output, and its measures against slow readers.
struct DeliveryCounters {
    var frames = 0
    var bytes = 0
    var writes = 0
    /// Presence and typing frames that were not queued.
    var coalesced = 0
    /// Sockets that the feed stopped waiting for.
    var writtenOff = 0
    /// Sockets closed at their cap.
    var closed = 0
    /// Sockets that did not take a close frame in time.
    var cut = 0
}

/// A loop's figures for the operator, published once a second so that reading them costs the loop nothing.
final class LoopGauges: Sendable {
    private let published = Mutex(LoopFigures())
    /// Always up to date, because a drain waits for it to reach zero.
    let connections = Atomic<Int>(0)
    /// When the figures were last published, in milliseconds of uv_hrtime; 0 before the loop runs.
    private let heartbeatAt = Atomic<Int64>(0)

    /// Notes that the loop is running.
    func turns() { heartbeatAt.store(Self.now, ordering: .relaxed) }

    /// A number that changes with each second in which the loop ran.
    var heartbeat: Int { Int(heartbeatAt.load(ordering: .relaxed)) }

    /// The time since the loop last published; zero before it runs.
    var silence: Duration {
        let last = heartbeatAt.load(ordering: .relaxed)
        return last == 0 ? .zero : .milliseconds(max(0, Self.now - last))
    }

    private static var now: Int64 { EventLoop.milliseconds }

    func publish(_ loop: EventLoop) {
        let figures = LoopFigures(of: loop)
        published.withLock { $0 = figures }
        turns()
    }

    var figures: LoopFigures {
        var figures = published.withLock { $0 }
        figures.connections = connections.load(ordering: .relaxed)
        return figures
    }
}
