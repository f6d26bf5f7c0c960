/// What the parent tells a worker.
enum Order: Codable, Sendable {
    case plan(LoadPlan, worker: Int)
    case connect
    case start(Timing)
    /// Asks for a report.
    case report
    case stop
    /// Wait for what is still under way, for so many seconds at most; with the claims of all workers.
    case settle(claims: [UInt64], seconds: Double)
    case quit
}
