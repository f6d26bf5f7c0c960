import Glibc

/// What was counted and measured in the phases of a run.
struct Findings {
    let plan: LoadPlan
    var startedAt = 0.0
    var timing = Timing(start: 0, warmUp: 0, seconds: 0)
    var connectSeconds = 0.0
    var measuredSeconds = 0.0
    /// Before anybody connected; when all had joined; from the end of the warm-up to the end of the schedule, and to the
    /// last delivery.
    var before: Usage
    var connected: Usage
    var from: Usage
    var held: Usage
    var to: Usage
    var atStart = Totals()
    var atEnd = Totals()
    var results: [WorkerResult] = []
    var samples: [RunRecord.Sample] = []
    var minutes: [UInt64] = []
    var wasInterrupted = false

    init(_ plan: LoadPlan, before: Usage) {
        self.plan = plan
        self.before = before
        (connected, from, held, to) = (before, before, before, before)
    }

    var count: DeliveryCount {
        var count = DeliveryCount()
        for result in results { count.add(result.count) }
        return count
    }

    var troubles: Troubles {
        var troubles = Troubles()
        for result in results { troubles.add(result.troubles) }
        return troubles
    }

    func sum(_ name: String) -> Double { results.reduce(0) { $0 + ($1.sums[name] ?? 0) } }
    func largest(_ name: String) -> Double? { results.compactMap { $0.maxima[name] }.max() }
    func has(_ name: String) -> Bool { results.contains { $0.sums[name] != nil } }

    /// Sockets that the server closed though they had joined. Those that stalled on purpose are left out: they are meant to be cut off.
    var closedSockets: Int {
        max(0, results.reduce(0) { $0 + $1.closedSockets } - Int(sum("stalled_cut") + sum("stalled_closed_later")))
    }

    var refusedSockets: Int { results.reduce(0) { $0 + $1.refusedSockets } }

    /// Messages that came while it was measured.
    var received: Double { Double(max(1, atEnd.received - atStart.received)) }

    func latency(_ kind: LatencyKind) -> LatencyHistogram? {
        let dumps = results.compactMap { $0.latencies[kind] }
        guard !dumps.isEmpty else { return nil }
        var histogram = LatencyHistogram()
        for dump in dumps { histogram.add(dump) }
        return histogram
    }
}

extension Findings {
    /// All of it, as it is shown.
    func record(command: [String], expectations: [Expectation], memoryTolerance: Double) -> RunRecord {
        var record = RunRecord(
            command: command, scenario: plan.scenario.rawValue, target: plan.target.description, startedAt: startedAt)
        record.measuredSeconds = measuredSeconds
        record.conditions = Conditions.now
        record.parameters = parameters
        record.figures = figures
        record.latencies = latencies
        record.samples = samples
        record.remarks = remarks
        record.expectations =
            ownVerdicts(memoryTolerance: memoryTolerance) + expectations.map { $0.verdict(on: record) }
        return record
    }

    private var latencies: [RunRecord.Latency] {
        let first = plan.scenario.primaryLatency
        let kinds = [first] + LatencyKind.allCases.filter { $0 != first }
        return kinds.compactMap { kind in
            guard let histogram = latency(kind), histogram.count > 0 else { return nil }
            return RunRecord.Latency(
                title: kind.title, name: kind.name, count: histogram.count,
                quantiles: Quantiles.shares(count: histogram.count).map { share in
                    RunRecord.Latency.Quantile(share: share, nanoseconds: histogram.quantile(share) ?? 0)
                })
        }
    }

    private var remarks: [String] {
        var remarks: [String] = []
        if wasInterrupted { remarks.append("The run was ended early, by Ctrl-C.") }
        remarks += troubles.sentences
        for result in results { remarks += result.remarks }
        return remarks
    }

    private var parameters: [RunRecord.Fact] {
        var facts: [(String, String)] = [("sockets", String(plan.sockets)), ("worker processes", String(plan.workers))]
        if plan.scenario.hasConversations {
            if plan.chat.members > 0 { facts.append(("members", String(plan.chat.members))) }
            facts.append(("conversations per socket", String(plan.chat.conversationsPerSocket)))
            facts.append(("writers", String(plan.rows?.writers ?? 0)))
            facts.append(("readers", Decimal.text(plan.chat.readers, digits: 2)))
            facts.append(("churn per minute", Decimal.text(plan.chat.churn, digits: 3)))
        } else {
            facts.append(("channels", String(plan.channels)))
            facts.append(("channels per socket", String(plan.channelsPerSocket)))
            facts.append(("message bytes", String(plan.size)))
            facts.append(("burst", String(plan.burst)))
        }
        facts.append(("rate", Decimal.text(plan.rate, digits: 1) + "/s"))
        facts.append(("duration", Decimal.text(plan.seconds, digits: 1) + " s"))
        facts.append(("warm-up", Decimal.text(plan.warmUp, digits: 1) + " s"))
        facts.append(("protocol", plan.raw != nil ? "raw frames" : "vsn \(plan.dialect.version.rawValue)"))
        facts.append(("heartbeat", "\(plan.heartbeat) s"))
        facts.append(("seed", String(plan.seed)))
        return facts.map { RunRecord.Fact(name: $0, value: $1) }
    }
}

/// What a run was made on.
enum Conditions {
    static var now: [RunRecord.Fact] {
        var facts = [("cores", String(sysconf(Int32(_SC_NPROCESSORS_ONLN))))]
        if let kernel = ProcFile.read("/proc/sys/kernel/osrelease") { facts.append(("Linux", trimmed(kernel))) }
        if let model = ProcFile.read("/proc/cpuinfo")?.split(separator: "\n").first(where: {
            $0.hasPrefix("model name")
        }) {
            facts.append(("processor", trimmed(String(model.drop { $0 != ":" }.dropFirst()))))
        }
        if let load = ProcFile.read("/proc/loadavg") {
            facts.append(("load average at the end", load.split(separator: " ").prefix(3).joined(separator: " ")))
        }
        return facts.map { RunRecord.Fact(name: $0, value: $1) }
    }

    private static func trimmed(_ text: String) -> String {
        var text = text[...]
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text.drop { $0.isWhitespace })
    }
}

/// The shares of a distribution that a plot needs: five for each halving of what lies beyond.
enum Quantiles {
    private static let named = [0, 0.5, 0.9, 0.99, 0.999, 1]

    /// In ascending order; beyond the last single value there is nothing to show.
    static func shares(count: Int) -> [Double] {
        var shares = named
        var beyond = 1.0
        while beyond * Double(count) > 1, shares.count < 200 {
            beyond *= 0.870550563296124  // The fifth root of a half.
            shares.append(1 - beyond)
        }
        return shares.sorted()
    }
}
