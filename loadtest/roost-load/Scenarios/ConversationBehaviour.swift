/// The scenarios `changes`, `chat` and `soak`: rows go in through Postgres and come out at everybody in their
/// conversation, who also type, confirm what they read, and come and go.
final class ConversationBehaviour: ScenarioBehaviour {
    var meter: Meter
    let plan: LoadPlan
    let roster: Roster
    let frames: ChatFrames
    let code: StampCode
    var script: ChatScript
    var rows: RowCheck
    var windows: MembershipWindows
    /// How many read receipts each membership has sent.
    var receipts: [Int]
    var start: UInt64 = .max
    let worker: Int
    private var failures: [Int: Int] = [:]
    private var rowEnds: [Int] = []
    private var hasEnded = false

    init(_ plan: LoadPlan, worker: Int) throws {
        self.plan = plan
        self.worker = worker
        roster = Roster(plan, worker: worker)
        let all = (0..<plan.workers).reduce(0) { $0 + Roster.conversations(of: $1, plan) }
        let schedule = RowSchedule(plan, worker: worker, conversations: roster.members.count, of: all)
        frames = try ChatFrames(plan, roster, schedule)
        code = StampCode(run: plan.run)
        script = ChatScript(plan, roster, schedule, worker: worker)
        rows = RowCheck(schedule, writers: ((plan.rows?.writers ?? 1) + plan.workers - 1) / plan.workers)
        windows = MembershipWindows(roster, hearsReceipts: plan.chat.readers > 0)
        receipts = [Int](repeating: 0, count: roster.conversations.count)
        meter = Meter(primary: plan.scenario.primaryLatency)
    }

    func prepare() throws {
        guard let terms = plan.rows else { return }
        for index in 0..<rows.writers {
            try Writer(
                index: index, count: rows.writers, schedule: rows.schedule, code: code, conninfo: terms.conninfo,
                insert: terms.insert, log: rows.log
            ).start()
        }
        while rows.log.connectedCount < rows.writers {
            if let failure = rows.log.failure { throw failure }
            MonotonicClock.sleep(until: MonotonicClock.now + 2_000_000)
        }
    }

    func start(_ timing: Timing, _ fleet: Fleet<ConversationBehaviour>) {
        start = timing.start
        script.begin(at: timing.start)
        rows.log.begin(at: timing.start)
    }

    func turnEnded() { rows.measure(&meter) }

    func isFinished(_ fleet: Fleet<ConversationBehaviour>) -> Bool { false }

    func stop(_ fleet: Fleet<ConversationBehaviour>) {
        hasEnded = true
        script.stop()
        rows.log.stop()
    }

    var hasStopped: Bool { rows.log.finishedCount == rows.writers }

    // MARK: The end

    func settle(_ channelSums: [UInt64], _ fleet: Fleet<ConversationBehaviour>) {
        rowEnds = rows.begun()
        failures = rows.log.failures
    }

    func isSettled(_ fleet: Fleet<ConversationBehaviour>) -> Bool { missing(fleet) == 0 }

    /// What those who are there have not got yet.
    private func missing(_ fleet: Fleet<ConversationBehaviour>) -> Int {
        var missing = 0
        for membership in roster.conversations.indices where windows.isActive(membership) {
            let conversation = roster.conversations[membership]
            missing += windows.missing(membership, rowEnd: rowEnds[conversation], receipts)
            // What the database has refused nobody waits for.
            missing -= failures[conversation] ?? 0
        }
        return missing
    }

    func conclude(_ result: inout WorkerResult, _ fleet: Fleet<ConversationBehaviour>) {
        meter.count.lost += max(0, missing(fleet))
        for membership in roster.conversations.indices where windows.isActive(membership) {
            let conversation = roster.conversations[membership]
            meter.count.expected +=
                windows.expected(membership, rowEnd: rowEnds[conversation], receipts) - (failures[conversation] ?? 0)
        }
        let failed = failures.values.reduce(0, +)
        result.sums["commits"] = Double(rows.log.committedCount)
        result.sums["failed_inserts"] = Double(failed)
        result.sums["early"] = Double(rows.early)
        result.maxima["last_commit_moment"] = Double(rows.log.lastCommit)
        if failed > 0, let failure = rows.log.failure { result.remarks.append(failure.sentence) }
    }

    // MARK: Comings and goings

    func opening(of slot: Int) -> Opening { frames.opening(of: slot) }

    func joined(_ slot: Int, at now: UInt64, _ fleet: Fleet<ConversationBehaviour>) throws {
        meter.recordAlways(.join, from: fleet.sockets[slot].dialled, to: now)
        try frames.forEachMembership(of: slot) { membership, conversation in
            windows.begin(membership, rowsIssued: rows.issued(in: conversation, at: now), receipts)
            guard plan.chat.tracksPresence else { return }
            let stamp = Stamp(kind: .presence, stream: stream(membership), number: 0, due: now, sent: now)
            try fleet.send(frames.track(membership, code.bytes(of: stamp)), on: slot)
        }
    }

    func ended(_ slot: Int, at now: UInt64, _ fleet: Fleet<ConversationBehaviour>) {
        // Without churn nobody comes back, and what they do not get counts as lost.
        guard plan.chat.churn > 0 else { return }
        left(slot)
        if !hasEnded { script.comeback(of: slot, after: now) }
    }

    func left(_ slot: Int) {
        frames.forEachMembership(of: slot) { membership, _ in
            guard windows.isActive(membership) else { return }
            let (missing, expected) = windows.end(membership)
            meter.count.lost += missing
            meter.count.expected += expected
        }
    }

    func stream(_ membership: Int) -> Int { membership * plan.workers + worker }
}

/// Matches the rows that the sockets receive with what was inserted.
struct RowCheck {
    private struct Arrival {
        let tick: Int
        let moment: UInt64
    }
    let schedule: RowSchedule
    let log: CommitLog
    let writers: Int
    private var arrivals: [Arrival] = []
    private var waiting: [Arrival] = []
    /// Deliveries that were there before the writer heard of its commit; they count as zero.
    private(set) var early = 0

    init(_ schedule: RowSchedule, writers: Int) {
        self.schedule = schedule
        // A conversation has one writer, so more would have nothing to do.
        self.writers = max(1, min(writers, schedule.conversations))
        log = CommitLog(ticks: schedule.ticks.total, writers: self.writers)
    }

    mutating func arrived(_ tick: Int, at now: UInt64) { arrivals.append(Arrival(tick: tick, moment: now)) }

    /// Measures the arrivals whose commit has returned. The others wait: a delivery may be faster than the answer to the writer.
    mutating func measure(_ meter: inout Meter) {
        guard !arrivals.isEmpty, let start = log.start else { return }
        waiting.removeAll(keepingCapacity: true)
        var index = 0
        log.outcomes(of: arrivals.lazy.map(\.tick)) { outcome in
            let arrival = arrivals[index]
            index += 1
            switch outcome {
            case .pending: waiting.append(arrival)
            case .failed: meter.count.wrong += 1
            case .committed(let moment):
                if moment > arrival.moment { early += 1 }
                let due = start + schedule.ticks.offset(of: arrival.tick)
                meter.record(.commit, from: moment, to: arrival.moment, due: due)
                meter.record(.schedule, from: due, to: arrival.moment, due: due)
            }
        }
        swap(&arrivals, &waiting)
    }

    /// How many of a conversation's rows are due by now: those after them must come to whoever listens from now on.
    func issued(in conversation: Int, at now: UInt64) -> Int {
        guard let start = log.start, now >= start else { return 0 }
        return schedule.rows(in: conversation, among: schedule.ticks.due(after: now - start))
    }

    /// How many of each conversation's rows the writers have begun.
    func begun() -> [Int] {
        let begun = log.begun
        return (0..<schedule.conversations).map { schedule.rows(in: $0, among: begun[$0 % writers]) }
    }
}
