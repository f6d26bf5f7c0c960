/// Leads a run through its phases, from the plan to the record.
final class Coordinator {
    /// How long sockets may take to connect and join, in seconds.
    private static let connecting = 300.0
    private let plan: LoadPlan
    private let processes: [WatchedProcess]
    private let workers: WorkerGroup
    private var progress: Progress
    private var sampler: Sampler
    private var reports: [WorkerReport?]
    private var totals = Totals()
    private var nextSample: UInt64 = 0
    private var isAsking = false
    /// Whether the reports that were asked for make a sample.
    private var isSampling = false
    private var counts: [String: Int] = [:]
    private var channelSums: [UInt64] = []
    private var results: [WorkerResult] = []
    private var isInterrupted = false

    init(_ plan: LoadPlan, processes: [WatchedProcess], mode: Progress.Mode) throws {
        self.plan = plan
        self.processes = processes
        workers = try WorkerGroup(count: plan.workers)
        progress = .begin(scenario: plan.scenario.rawValue, expectedSeconds: plan.seconds, mode: mode)
        sampler = Sampler(processes)
        reports = [WorkerReport?](repeating: nil, count: plan.workers)
    }

    func run() throws -> Findings {
        defer { progress.end() }
        try workers.send { .plan(plan, worker: $0) }
        try pump(until: .max) { counts["prepared"] == workers.count }
        var findings = Findings(plan, before: try Usage(processes))
        try connect(&findings)
        try measure(&findings)
        try settle(&findings)
        findings.samples = sampler.samples
        findings.minutes = sampler.minutes
        findings.wasInterrupted = isInterrupted
        return findings
    }

    private func connect(_ findings: inout Findings) throws {
        let start = MonotonicClock.now
        nextSample = start + 1_000_000_000
        try workers.send(.connect)
        try pump(until: start + UInt64(Self.connecting * 1e9)) { counts["connected"] == workers.count || isInterrupted }
        findings.connectSeconds = Double(MonotonicClock.now - start) / 1e9
        // What the server does afterwards on behalf of the joins belongs to them.
        try pump(until: MonotonicClock.now + 500_000_000) { isInterrupted }
        findings.connected = try Usage(processes)
        findings.atStart = try ask()
        guard totals.joined > 0 else {
            let why = totals.troubles.sentences.first.map { " " + $0 } ?? ""
            throw LoadFailure("None of \(plan.sockets) sockets has joined.\(why)")
        }
        progress.note("\(totals.joined) sockets joined in \(Decimal.text(findings.connectSeconds, digits: 2)) s.")
    }

    private func measure(_ findings: inout Findings) throws {
        findings.startedAt = WallClock.now
        let timing = Timing(start: MonotonicClock.now + 50_000_000, warmUp: plan.warmUp, seconds: plan.seconds)
        findings.timing = timing
        sampler.setZero(timing.measuredFrom)
        try workers.send(.start(timing))
        try pump(until: timing.measuredFrom) { isInterrupted }
        findings.atStart = try ask()
        findings.from = try Usage(processes)
        nextSample = MonotonicClock.now + 1_000_000_000
        try pump(until: timing.end) { isInterrupted || counts["finished"] == workers.count }
        findings.measuredSeconds = Double(MonotonicClock.now - timing.measuredFrom) / 1e9
        findings.held = Usage(living: processes)
    }

    private func settle(_ findings: inout Findings) throws {
        try workers.send(.stop)
        try pump(until: MonotonicClock.now + 60_000_000_000) { counts["stopped"] == workers.count }
        guard counts["stopped"] == workers.count else {
            throw LoadFailure("A minute after the end the database had still not answered the last inserts.")
        }
        // Ctrl-C means soon.
        try workers.send(.settle(channelSums: channelSums, seconds: isInterrupted ? min(2, plan.settle) : plan.settle))
        try pump(until: .max) { results.count == workers.count }
        findings.to = Usage(living: processes)
        findings.atEnd = try ask()
        findings.results = results
        try workers.send(.quit)
    }

    // MARK: Hearing the workers

    /// Takes what the workers say until something is so, or a moment has come; makes a sample every second meanwhile.
    private func pump(until moment: UInt64, _ isOver: () -> Bool) throws {
        while !isOver(), MonotonicClock.now < moment {
            if nextSample > 0, MonotonicClock.now >= nextSample, !isAsking {
                nextSample = max(nextSample + 1_000_000_000, MonotonicClock.now)
                (isAsking, isSampling) = (true, true)
                try workers.send(.report)
            }
            switch try workers.nextEvent(until: nextSample > 0 && !isAsking ? min(moment, nextSample) : moment) {
            case .time: break
            case .interrupt:
                guard !isInterrupted else { throw LoadFailure("Ended at once, without a report.") }
                isInterrupted = true
                progress.note("Ending early.")
            case .message(let message, let worker): take(message, of: worker)
            }
        }
    }

    private func take(_ message: WorkerMessage, of worker: Int) {
        switch message {
        case .prepared: counts["prepared", default: 0] += 1
        case .connected: counts["connected", default: 0] += 1
        case .finished: counts["finished", default: 0] += 1
        case .stopped(let own):
            counts["stopped", default: 0] += 1
            channelSums += repeatElement(0, count: max(0, own.count - channelSums.count))
            for (index, sum) in own.enumerated() { channelSums[index] &+= sum }
        case .result(let result): results.append(result)
        case .report(let report):
            reports[worker] = report
            sampler.add(report.latencies)
            if reports.allSatisfy({ $0 != nil }) { takeReports() }
        case .failed: break
        }
    }

    private func takeReports() {
        totals = Totals()
        for report in reports { if let report { totals.add(report) } }
        reports = reports.map { _ in nil }
        if isSampling { progress.show(sampler.sample(totals)) }
        (isAsking, isSampling) = (false, false)
    }

    /// The counters of this moment.
    private func ask() throws -> Totals {
        try pump(until: .max) { !isAsking }
        isAsking = true
        try workers.send(.report)
        try pump(until: .max) { !isAsking }
        return totals
    }
}

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
