/// Runs one worker's part of a scenario, from phase to phase as the parent says.
final class Worker<Behaviour: ScenarioBehaviour> {
    private enum Stage: Equatable {
        case waiting, connecting, running, stopping, stopped
        case settling(until: UInt64)
        /// Some deliveries come twice: they are given a moment.
        case lingering(until: UInt64)
        case done
    }
    private let link: Link
    private let behaviour: Behaviour
    private let fleet: Fleet<Behaviour>
    private var stage = Stage.waiting
    private var hasFinished = false
    private var isConnected = false
    private var checked: UInt64 = 0

    init(_ link: Link, _ behaviour: Behaviour, _ fleet: FleetPlan, smallBuffers: Int = 0) throws {
        self.link = link
        self.behaviour = behaviour
        self.fleet = try Fleet(fleet, behaviour)
        self.fleet.smallBuffers = smallBuffers
    }

    /// Returns when the parent wants no more.
    func run() throws {
        try fleet.poller.add(link.descriptor, fleet.sockets.count, .readable)
        try behaviour.prepare()
        try link.send(WorkerMessage.prepared)
        var goesOn = true
        while goesOn {
            if stage == .running { try behaviour.act(at: MonotonicClock.now, fleet) }
            try advance()
            let patience = MonotonicClock.now + 20_000_000
            try fleet.turn(until: min(stage == .running ? behaviour.nextDue : .max, patience)) { _ in
                goesOn = try handleMessage()
            }
        }
    }

    /// - Returns: whether there is more to come.
    private func handleMessage() throws -> Bool {
        guard let message = try link.receive(ParentMessage.self) else { return false }
        switch message {
        case .plan: break
        case .connect:
            stage = .connecting
            fleet.openAll()
        case .start(let timing):
            stage = .running
            behaviour.meter.window = timing.measuredFrom..<timing.end
            try behaviour.start(timing, fleet)
        case .report: try link.send(WorkerMessage.report(report))
        case .stop:
            stage = .stopping
            try behaviour.stop(fleet)
        case .settle(let channelSums, let seconds):
            try behaviour.settle(channelSums, fleet)
            stage = .settling(until: MonotonicClock.now + UInt64(seconds * 1e9))
        case .quit: return false
        }
        return true
    }

    private func advance() throws {
        let now = MonotonicClock.now
        switch stage {
        case .connecting where fleet.pendingCount == 0 && !isConnected:
            isConnected = true
            try link.send(WorkerMessage.connected)
        case .running where !hasFinished && behaviour.isFinished(fleet):
            hasFinished = true
            try link.send(WorkerMessage.finished)
        case .stopping where behaviour.hasStopped:
            stage = .stopped
            try link.send(WorkerMessage.stopped(channelSums: behaviour.channelSums))
        case .settling(let deadline) where now >= checked + 20_000_000:
            checked = now
            if now >= deadline || behaviour.isSettled(fleet) { stage = .lingering(until: now + 300_000_000) }
        case .lingering(let moment) where now >= moment:
            stage = .done
            try link.send(WorkerMessage.result(result))
        default: break
        }
    }

    private var report: WorkerReport {
        let errors = fleet.troubles.total + behaviour.meter.count.repeated + behaviour.meter.count.outOfOrder
        return WorkerReport(
            sockets: fleet.openCount, joined: fleet.readyCount, sent: behaviour.meter.sent,
            received: behaviour.meter.received, delivered: behaviour.meter.count.delivered, errors: errors,
            troubles: fleet.troubles, usage: .now, latencies: behaviour.meter.takeSecond())
    }

    private var result: WorkerResult {
        var result = WorkerResult(count: behaviour.meter.count)
        behaviour.conclude(&result, fleet)
        result.count = behaviour.meter.count
        result.latencies = behaviour.meter.dumps
        result.troubles = fleet.troubles
        result.closedSockets = fleet.droppedCount
        result.refusedSockets = fleet.refusedCount
        return result
    }
}

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

/// What one worker found in a run.
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
    /// The scenario's own figures of which the largest of all workers counts.
    var maxima: [String: Double] = [:]
    var remarks: [String] = []
}
