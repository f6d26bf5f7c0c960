import Documents
import Gateway
import Hub

/// Makes one sample per second from the loops' figures.
///
/// Each loop publishes by its own clock, so between two samples it may have published twice or not at all. Rates are
/// computed by the loop's own time, and stay as they were if it has published nothing new.
struct DashboardSampler {
    /// The rates of one loop between its last two publications.
    private struct Rates {
        var framesIn = 0.0
        var framesOut = 0.0
        var bytesIn = 0.0
        var bytesOut = 0.0
        var accepted = 0.0
        var closed = 0.0
        var joins = 0.0
        var busy = 0.0
        var turn: Double?
    }

    private var before: [LoopFigures] = []
    private var rates: [Rates] = []
    private var cpuBefore: (cpu: Double, at: Double)?

    /// - Parameters:
    ///   - loops: the figures of each loop, always in the same order.
    ///   - unix: seconds since 1970.
    ///   - monotonic: seconds on a clock that never goes back.
    ///   - cpu: CPU seconds used by the process.
    mutating func takeSample(_ loops: [LoopFigures], unix: Double, monotonic: Double, cpu: Double) -> DashboardSample {
        var sample = DashboardSample()
        sample.at = unix
        if let (used, at) = cpuBefore, monotonic > at { sample.cores = (cpu - used) / (monotonic - at) }
        cpuBefore = (cpu, monotonic)
        // The first publications have no earlier ones to compare with.
        if before.count != loops.count { (before, rates) = (loops, loops.map { _ in Rates() }) }
        var lag = Histogram.ofLatency
        for (index, now) in loops.enumerated() {
            let earlier = before[index]
            if now.publishedAt > earlier.publishedAt {
                rates[index] = Self.loopRates(now, since: earlier)
                lag.addCounts(now.lag.changeSince(earlier.lag))
                sample.stalls += now.stalls - earlier.stalls
                before[index] = now
            }
            sample.addLoop(now, rates[index].busy, rates[index].turn)
            let loop = rates[index]
            sample.framesIn += loop.framesIn
            sample.framesOut += loop.framesOut
            sample.bytesIn += loop.bytesIn
            sample.bytesOut += loop.bytesOut
            sample.accepted += loop.accepted
            sample.closed += loop.closed
            sample.joins += loop.joins
        }
        sample.lagMedian = lag.estimate(0.5).map { $0 / 1e6 }
        sample.lagP99 = lag.estimate(0.99).map { $0 / 1e6 }
        return sample
    }

    private static func loopRates(_ now: LoopFigures, since earlier: LoopFigures) -> Rates {
        let seconds = Double(now.publishedAt - earlier.publishedAt) / 1e9
        func rate(_ count: (LoopFigures) -> Int) -> Double { Double(count(now) - count(earlier)) / seconds }
        let turns = now.turns.changeSince(earlier.turns)
        return Rates(
            framesIn: rate(\.framesIn), framesOut: rate(\.framesOut), bytesIn: rate(\.bytesIn),
            bytesOut: rate(\.bytesOut), accepted: rate(\.accepted),
            closed: rate { $0.connectionsClosed.values.reduce(0, +) }, joins: rate(\.hub.joins),
            busy: Double(turns.sum) / 1e9 / seconds, turn: turns.estimate(0.99).map { $0 / 1e6 })
    }
}

extension DashboardSample {
    fileprivate mutating func addLoop(_ loop: LoopFigures, _ busy: Double, _ turn: Double?) {
        connections += loop.connections
        pendingBytes += loop.pendingBytes
        loops.append(Loop(connections: loop.connections, busy: min(1, busy), turn: turn))
    }
}

/// The hub's activity in one second, and its state at the end of it.
struct DashboardSample: Sendable {
    /// One event loop's part.
    struct Loop: Sendable {
        var connections = 0
        /// The share of time spent working, 0 to 1.
        var busy = 0.0
        /// The 99th percentile of a turn's duration in milliseconds; nil without turns.
        var turn: Double?
    }

    /// The end of the second, in seconds since 1970.
    var at = 0.0
    var connections = 0
    var pendingBytes = 0
    // The following are per second.
    var framesIn = 0.0
    var framesOut = 0.0
    var bytesIn = 0.0
    var bytesOut = 0.0
    var accepted = 0.0
    var closed = 0.0
    var joins = 0.0
    /// Milliseconds from a commit to the sockets; nil without rows.
    var lagMedian: Double?
    var lagP99: Double?
    /// Turns longer than 100 ms.
    var stalls = 0
    /// The number of cores that the process used.
    var cores = 0.0
    var loops: [Loop] = []

    var json: JSONDocument {
        [
            "at": .rounded(at), "connections": .integer(connections), "pending": .integer(pendingBytes),
            "framesIn": .rounded(framesIn), "framesOut": .rounded(framesOut), "bytesIn": .rounded(bytesIn),
            "bytesOut": .rounded(bytesOut), "accepted": .rounded(accepted), "closed": .rounded(closed),
            "joins": .rounded(joins), "lagMedian": .rounded(lagMedian), "lagP99": .rounded(lagP99),
            "stalls": .integer(stalls), "cores": .rounded(cores),
            "loops": .array(
                loops.map {
                    ["connections": .integer($0.connections), "busy": .rounded($0.busy), "turn": .rounded($0.turn)]
                }),
        ]
    }
}
