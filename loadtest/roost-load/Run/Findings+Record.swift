import Glibc

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
