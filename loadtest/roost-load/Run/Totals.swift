/// The workers' counters at one moment, added up.
struct Totals {
    var sockets = 0
    var joined = 0
    var sent = 0
    var received = 0
    var delivered = 0
    var errors = 0
    /// Microseconds of CPU: of the threads that receive, and of all.
    var receiving = 0.0
    var process = 0.0
    var troubles = Troubles()

    mutating func add(_ report: WorkerReport) {
        sockets += report.sockets
        joined += report.joined
        sent += report.sent
        received += report.received
        delivered += report.delivered
        errors += report.errors
        receiving += report.usage.receiving
        process += report.usage.process
        troubles.add(report.troubles)
    }
}
