/// Whether a process' memory grows: a straight line through the second half of the measurement, by least squares.
///
/// In the first half caches and pools fill up.
struct MemoryTrend {
    /// KB per second.
    let slope: Double
    /// How much the line rises over the second half, in percent of the mean.
    let growthPercent: Double

    /// Nil where there is too little to tell: less than 20 samples.
    init?(_ samples: [RunRecord.Sample], of name: String) {
        guard let last = samples.last?.seconds else { return nil }
        let points = samples.compactMap { sample -> (x: Double, y: Double)? in
            guard sample.seconds >= last / 2, let process = sample.processes.first(where: { $0.name == name }) else {
                return nil
            }
            return (sample.seconds, process.memoryKB)
        }
        guard points.count >= 20 else { return nil }
        let count = Double(points.count)
        let x = points.reduce(0) { $0 + $1.x } / count, y = points.reduce(0) { $0 + $1.y } / count
        let spread = points.reduce(0) { $0 + ($1.x - x) * ($1.x - x) }
        guard spread > 0, y > 0 else { return nil }
        slope = points.reduce(0) { $0 + ($1.x - x) * ($1.y - y) } / spread
        growthPercent = slope * (last / 2) / y * 100
    }
}
