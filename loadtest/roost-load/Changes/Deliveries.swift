/// Matches what the sockets receive with what was inserted.
struct Deliveries: FleetBehaviour {
    private struct Arrival {
        let tick: Int
        let moment: UInt64
    }
    private let plan: ChangesPlan
    private let log: CommitLog
    private let needle: Needle
    private var arrivals: [Arrival] = []
    private(set) var check: SequenceCheck
    private(set) var fromCommit = Histogram()
    private(set) var fromSchedule = Histogram()
    /// Deliveries that were there before the writer heard of its commit; they count as zero.
    private(set) var early = 0
    /// Deliveries of another conversation's rows, or of inserts that were refused.
    private(set) var wrong = 0

    init(_ plan: ChangesPlan, _ log: CommitLog) {
        self.plan = plan
        self.log = log
        needle = Stamp(run: plan.run).needle
        check = SequenceCheck(subscribers: plan.subscribers)
    }

    mutating func received(_ frame: UnsafeRawBufferPointer, on slot: Int, at now: UInt64) {
        guard let start = needle.end(in: frame) else { return }
        guard let tick = Stamp.tick(in: frame, at: start), tick < plan.total,
            plan.conversation(ofTick: tick) == plan.conversation(ofSlot: slot)
        else {
            wrong += 1
            return
        }
        if check.take(tick / plan.conversations, by: slot) { arrivals.append(Arrival(tick: tick, moment: now)) }
    }

    /// Those whose commit has returned are measured; a delivery may be faster than the answer to the writer.
    mutating func turnEnded() {
        guard !arrivals.isEmpty, let start = log.start else { return }
        var waiting: [Arrival] = []
        var index = 0
        log.outcomes(of: arrivals.lazy.map(\.tick)) { outcome in
            let arrival = arrivals[index]
            index += 1
            switch outcome {
            case .pending: waiting.append(arrival)
            case .failed: wrong += 1
            case .committed(let moment):
                if moment > arrival.moment { early += 1 }
                fromCommit.add(arrival.moment > moment ? arrival.moment - moment : 0)
                let due = start + plan.offset(ofTick: arrival.tick)
                fromSchedule.add(arrival.moment > due ? arrival.moment - due : 0)
            }
        }
        arrivals = waiting
    }
}
