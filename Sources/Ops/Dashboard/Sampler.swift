import Gateway
import Hub

/// Makes a sample a second of what loops publish.
///
/// Each loop publishes by a clock of its own, so between two samples one may have published twice or not at all; its rates
/// are by its own time, and those of before where there is nothing new.
struct Sampler {
    /// What one loop did in a second, by its last two publications.
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
    ///   - loops: of each loop, always in the same order.
    ///   - unix: seconds since 1970.
    ///   - monotonic: seconds on a clock that never goes back.
    ///   - cpu: seconds that the process has used.
    mutating func sample(_ loops: [LoopFigures], unix: Double, monotonic: Double, cpu: Double) -> Sample {
        var sample = Sample()
        sample.at = unix
        if let (used, at) = cpuBefore, monotonic > at { sample.cores = (cpu - used) / (monotonic - at) }
        cpuBefore = (cpu, monotonic)
        // The first publications have nothing before them to be compared with.
        if before.count != loops.count { (before, rates) = (loops, loops.map { _ in Rates() }) }
        var lag = Histogram.ofLatency
        for (index, now) in loops.enumerated() {
            let earlier = before[index]
            if now.publishedAt > earlier.publishedAt {
                rates[index] = Self.rates(now, since: earlier)
                lag.add(now.lag.since(earlier.lag))
                sample.stalls += now.stalls - earlier.stalls
                before[index] = now
            }
            sample.add(now, rates[index].busy, rates[index].turn)
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

    private static func rates(_ now: LoopFigures, since earlier: LoopFigures) -> Rates {
        let seconds = Double(now.publishedAt - earlier.publishedAt) / 1e9
        func rate(_ count: (LoopFigures) -> Int) -> Double { Double(count(now) - count(earlier)) / seconds }
        let turns = now.turns.since(earlier.turns)
        return Rates(
            framesIn: rate(\.framesIn), framesOut: rate(\.framesOut), bytesIn: rate(\.bytesIn),
            bytesOut: rate(\.bytesOut), accepted: rate(\.accepted),
            closed: rate { $0.connectionsClosed.values.reduce(0, +) }, joins: rate(\.hub.joins),
            busy: Double(turns.sum) / 1e9 / seconds, turn: turns.estimate(0.99).map { $0 / 1e6 })
    }
}

extension Sample {
    fileprivate mutating func add(_ loop: LoopFigures, _ busy: Double, _ turn: Double?) {
        connections += loop.connections
        pendingBytes += loop.pendingBytes
        loops.append(Loop(connections: loop.connections, busy: min(1, busy), turn: turn))
    }
}
