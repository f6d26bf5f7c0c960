/// What came of a run in one worker.
struct WorkerResult: Codable, Sendable {
    var count: DeliveryCount
    var latencies: [LatencyKind: HistogramDump] = [:]
    var troubles = Troubles()
    /// Sockets that the server closed though they had joined.
    var closedSockets = 0
    /// Sockets that could not connect or join.
    var refusedSockets = 0
    /// The scenario's own figures, those of all workers added up.
    var sums: [String: Double] = [:]
    /// Those of which the largest counts.
    var maxima: [String: Double] = [:]
    var remarks: [String] = []
}
