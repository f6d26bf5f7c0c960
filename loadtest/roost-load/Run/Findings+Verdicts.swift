extension Findings {
    /// What every run is held to, whether somebody asked or not.
    func ownVerdicts(memoryTolerance: Double) -> [RunRecord.Verdict] {
        var verdicts: [RunRecord.Verdict] = []
        func expect(_ text: String, _ holds: Bool, _ found: String) {
            verdicts.append(RunRecord.Verdict(text: text, holds: holds, found: found))
        }
        let count = count
        if plan.scenario != .idle, plan.scenario != .storm, plan.scenario != .presence {
            let mistakes = [
                (count.lost, "lost"), (count.repeated, "came twice"), (count.outOfOrder, "out of order"),
                (count.wrong, "at the wrong socket"),
            ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
            expect(
                "every message once and in order", mistakes.isEmpty,
                mistakes.isEmpty ? "all of \(count.delivered)" : mistakes.joined(separator: ", "))
        }
        if has("wrong_states") {
            expect("everybody knows who is there", sum("wrong_states") == 0, "\(Int(sum("wrong_states"))) do not")
        }
        if has("failed_inserts") {
            expect("no insert fails", sum("failed_inserts") == 0, "\(Int(sum("failed_inserts"))) failed")
        }
        if plan.scenario == .storm {
            expect("everybody comes back", sum("away") == 0, "\(Int(sum("away"))) did not")
        } else {
            expect(
                "no socket is refused or closed", closedSockets + refusedSockets == 0,
                "\(refusedSockets) refused, \(closedSockets) closed")
        }
        if plan.scenario == .soak {
            for name in before.processes.map(\.name) {
                guard let trend = MemoryTrend(samples, of: name) else { continue }
                expect(
                    "memory of \(name) grows by less than \(Decimal.text(memoryTolerance, digits: 1)) % in the second half",
                    trend.growthPercent < memoryTolerance, "\(Decimal.text(trend.growthPercent, digits: 2)) %")
            }
        }
        return verdicts
    }
}

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
