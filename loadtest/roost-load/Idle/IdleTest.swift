/// The scenario `idle`: sockets join and then do nothing; what do they cost?
struct IdleTest {
    var fleet: FleetPlan
    var hold: Double
    var processes: [WatchedProcess]

    func run() throws -> IdleReport {
        let fleet = try Fleet(fleet, NoBehaviour())
        let before = try Usage(processes)
        try fleet.connect(within: 180)
        // What the hub does afterwards on behalf of the joins belongs to them.
        try fleet.run(for: 0.5)
        let joined = try Usage(processes)
        try fleet.run(for: hold)
        let held = try Usage(processes)
        return IdleReport(
            sockets: fleet.plan.count, join: joined.since(before), growth: joined.growth(since: before),
            idle: held.since(joined), heldGrowth: held.growth(since: before), closedSockets: fleet.closedCount)
    }
}
