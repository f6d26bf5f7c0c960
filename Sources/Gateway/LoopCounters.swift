import CWebSockets
import Hub
import Wire

/// What a loop has let in, heard and done, and how long it took: plain integers that the loop alone writes.
struct LoopCounters {
    var accepted = 0
    var refused: [Door.Reason: Int] = [:]
    /// By the code of the close frame; 1006 where there was none (RFC 6455, section 7.4.1), nil where no standard names the
    /// code: a client could make as many series of metrics as there are numbers.
    private(set) var closed: [UInt16?: Int] = [:]
    /// WebSockets and requests that were ended because all together held too much that was not finished.
    var unfinishedRefused = 0
    var framesReceived = 0
    var bytesReceived = 0
    var malformed = 0
    /// From a row's commit to its being handed to sockets.
    var lag = Histogram.ofLatency
    /// From when the loop wakes to when it waits again.
    var turns = Histogram.ofTurns
    var stalls = 0
    /// Nil while the loop waits.
    private var turnBegan: UInt64?

    /// Nanoseconds. Meanwhile nobody on this loop is served.
    private static let stall: UInt64 = 100_000_000

    mutating func ended(with code: UInt16) { closed[PeerClose.isRegistered(code) ? code : nil, default: 0] += 1 }

    /// Something has happened since the last turn ended.
    var isInTurn: Bool { turnBegan != nil }

    /// The loop begins to turn. What lws called while it was set up was no turn, however long the hub's start took.
    mutating func loopBegins() { turnBegan = nil }

    /// The first thing that happens in a turn.
    mutating func turnBegins() {
        if turnBegan == nil { turnBegan = uv_hrtime() }
    }

    /// - Returns: nanoseconds, where others had to wait for too long.
    mutating func turnEnds() -> UInt64? {
        guard let began = turnBegan else { return nil }
        turnBegan = nil
        let took = uv_hrtime() - began
        turns.record(nanoseconds: Int64(took))
        guard took > Self.stall else { return nil }
        stalls += 1
        return took
    }

    /// - Parameters: microseconds since 1970.
    mutating func handedOn(committedAtMicroseconds: Int64, at now: Int64) {
        lag.record(nanoseconds: max(0, now - committedAtMicroseconds) * 1000)
    }
}
