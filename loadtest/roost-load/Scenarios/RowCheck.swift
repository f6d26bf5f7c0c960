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

    /// Those whose commit has returned are measured; a delivery may be faster than the answer to the writer.
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
