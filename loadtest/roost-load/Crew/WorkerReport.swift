/// A worker's counters since its start, and the latencies since the last report.
struct WorkerReport: Codable, Sendable {
    var sockets = 0
    var joined = 0
    var sent = 0
    var received = 0
    var delivered = 0
    var errors = 0
    var troubles = Troubles()
    var usage: OwnUsage
    var latencies: HistogramDump
}
