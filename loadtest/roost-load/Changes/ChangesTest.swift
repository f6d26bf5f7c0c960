/// The scenario `changes`: rows go in through Postgres, and every one has to come out at every subscriber.
struct ChangesTest {
    var plan: ChangesPlan
    var fleet: FleetPlan
    var conninfo: String
    var insert: String
    var writers: Int
    /// How long to wait for the last deliveries, in seconds.
    var settle: Double
    var processes: [WatchedProcess]

    func run() throws -> ChangesReport {
        let log = CommitLog(ticks: plan.total)
        let fleet = try Fleet(fleet, Deliveries(plan, log))
        try startWriters(log)
        try fleet.connect(within: 120)
        let before = try Usage(processes)
        let start = Clock.now + 50_000_000
        log.begin(at: start)
        while log.finishedCount < writers { try fleet.turn(milliseconds: 20) }
        if let failure = log.failure, log.failureCount == 0 { throw failure }
        let wall = Double(Clock.now - start) / 1e9
        let expected = expectedDeliveries(log)
        let deadline = Clock.now + UInt64(settle * 1e9)
        while fleet.behaviour.check.received < expected, Clock.now < deadline { try fleet.turn(milliseconds: 20) }
        let cost = try Usage(processes).since(before)
        // A little longer, for those that come twice.
        try fleet.run(for: 0.3)
        return ChangesReport(
            plan: plan, deliveries: fleet.behaviour, expected: expected, wallSeconds: wall, cost: cost,
            failedInserts: log.failureCount, firstFailure: log.failure?.sentence, closedSockets: fleet.closedCount)
    }

    private func startWriters(_ log: CommitLog) throws {
        for index in 0..<writers {
            try Writer(index: index, count: writers, plan: plan, conninfo: conninfo, insert: insert, log: log).start()
        }
        while log.connectedCount < writers {
            if let failure = log.failure { throw failure }
            Clock.sleep(until: Clock.now + 2_000_000)
        }
    }

    private func expectedDeliveries(_ log: CommitLog) -> Int {
        var expected = 0
        var tick = 0
        log.outcomes(of: 0..<plan.total) { outcome in
            if case .committed = outcome { expected += plan.audience(of: plan.conversation(ofTick: tick)) }
            tick += 1
        }
        return expected
    }
}
