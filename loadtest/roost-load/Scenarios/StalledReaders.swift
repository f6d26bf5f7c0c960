/// The first sockets of a worker, where they stop to read for the time of the run.
struct StalledReaders {
    let count: Int
    private var from: UInt64 = 0
    private var resumed: UInt64?
    private var cutAfter: [Double] = []
    private var closedLater = 0

    init(count: Int) { self.count = count }

    @inline(__always)
    func contains(_ slot: Int) -> Bool { slot < count }

    /// - Parameter moment: from which the time is counted until the server cuts them off.
    mutating func begin<Behaviour>(_ fleet: Fleet<Behaviour>, at moment: UInt64) throws {
        from = moment
        for slot in 0..<count { try fleet.stall(slot, true) }
    }

    mutating func ended(_ slot: Int, at now: UInt64) {
        guard contains(slot), from > 0 else { return }
        if resumed == nil { cutAfter.append(Double(now - min(now, from)) / 1e9) } else { closedLater += 1 }
    }

    /// They read what has been waiting, and what the server has done meanwhile.
    mutating func goOn<Behaviour>(_ fleet: Fleet<Behaviour>) throws {
        resumed = Clock.now
        for slot in 0..<count { try fleet.stall(slot, false) }
    }

    func haveCaughtUp(at now: UInt64) -> Bool { count == 0 || resumed.map { now > $0 + 1_000_000_000 } ?? false }

    func conclude(_ result: inout WorkerResult) {
        guard count > 0 else { return }
        result.sums["stalled_cut", default: 0] += Double(cutAfter.count)
        result.sums["stalled_closed_later", default: 0] += Double(closedLater)
        result.sums["stalled_alive", default: 0] += Double(count - cutAfter.count - closedLater)
        if let last = cutAfter.max() { result.maxima["stalled_cut_after_seconds"] = last }
    }
}
