/// Progress for a log: one line for the samples of several seconds.
struct ProgressLine {
    private var samples = 0
    private var sent = 0
    private var received = 0
    private var worst: UInt64?
    private var last: RunRecord.Sample?

    mutating func add(_ sample: RunRecord.Sample) {
        samples += 1
        sent += sample.sent
        received += sample.received
        if let p99 = sample.p99 { worst = max(worst ?? 0, p99) }
        last = sample
    }

    /// The line for what was added since it was taken last; nil where that is nothing.
    mutating func take(scenario: String, expectedSeconds: Double?, errors: Int) -> String? {
        guard let last else { return nil }
        var time = "connecting and warming up"
        if last.seconds >= 0 {
            time = Amount.clock(seconds: last.seconds)
            if let expectedSeconds { time += " of \(Amount.clock(seconds: expectedSeconds))" }
        }
        var parts = [
            "\(Amount.count(last.sockets)) sockets", "\(Amount.count(last.joined)) joined",
            "\(Amount.count(sent / samples)) sent/s", "\(Amount.count(received / samples)) received/s",
        ]
        if let p50 = last.p50, let worst {
            parts.append(
                "p50 \(Decimal.duration(nanoseconds: p50)), p99 at most \(Decimal.duration(nanoseconds: worst))")
        }
        parts.append("\(Amount.count(errors)) errors")
        for process in last.processes {
            parts.append(
                "\(process.name) CPU \(Amount.percent(process.cpuPercent)) "
                    + "memory \(Amount.memory(kilobytes: process.memoryKB))")
        }
        self = ProgressLine()
        return VisibleText.of("\(scenario) \(time): \(parts.joined(separator: ", "))")
    }
}
