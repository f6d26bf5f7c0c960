import HeapModule

/// Something that somebody in a conversation is about to do.
struct ChatDeed: Comparable {
    enum Kind: Int {
        case typingBegins, typingEnds, receipt, departure, comeback
    }
    let due: UInt64
    let kind: Kind
    /// A seat, or for comings and goings a slot.
    let subject: Int
    /// The row that it is about.
    var tick = 0

    static func < (one: ChatDeed, other: ChatDeed) -> Bool {
        (one.due, one.kind.rawValue, one.subject) < (other.due, other.kind.rawValue, other.subject)
    }
}

/// Who does what when in a worker's conversations; the same for the same seed.
struct ChatScript {
    private let terms: ChatTerms
    private let roster: Roster
    private let schedule: RowSchedule
    private let seed: UInt64
    private var deeds = Heap<ChatDeed>()
    private var start: UInt64 = .max
    private var tick = 0
    private var departures: Schedule
    private var departure = 0

    init(_ plan: LoadPlan, _ roster: Roster, _ schedule: RowSchedule, worker: Int) {
        terms = plan.chat
        self.roster = roster
        self.schedule = schedule
        seed = plan.seed &+ UInt64(worker) &* 0x1_0001
        departures = Schedule(
            rate: terms.churn * Double(roster.numbers.count) / 60, seconds: plan.warmUp + plan.seconds)
    }

    mutating func begin(at moment: UInt64) { start = moment }
    mutating func stop() { (start, deeds) = (.max, Heap()) }

    var nextDue: UInt64 {
        guard start != .max else { return .max }
        return min(deeds.min?.due ?? .max, nextPlot, nextDeparture)
    }

    /// When the deeds around the next row have to be known.
    private var nextPlot: UInt64 {
        guard tick < schedule.ticks.total, terms.types || terms.readers > 0 else { return .max }
        let due = start + schedule.ticks.offset(of: tick), lead = Self.nanoseconds(ChatTerms.typingLead.upperBound)
        return due > lead ? due - lead : 0
    }

    private var nextDeparture: UInt64 {
        departure < departures.total ? start + departures.offset(of: departure) : .max
    }

    /// The next deed whose time has come.
    mutating func next(at now: UInt64) -> ChatDeed? {
        guard start != .max else { return nil }
        while nextPlot <= now { plot() }
        while nextDeparture <= now {
            let slot = Int(SplitMix.value(seed ^ 1, departure) % UInt64(roster.numbers.count))
            deeds.insert(ChatDeed(due: nextDeparture, kind: .departure, subject: slot))
            departure += 1
        }
        guard let deed = deeds.min, deed.due <= now else { return nil }
        return deeds.removeMin()
    }

    mutating func comeback(of slot: Int, after now: UInt64) {
        let share = SplitMix.share(seed ^ 2, slot, departure)
        deeds.insert(
            ChatDeed(
                due: now + Self.nanoseconds(Self.point(share, in: ChatTerms.absence)), kind: .comeback, subject: slot))
    }

    /// The author types, sends the row, and the others confirm it.
    private mutating func plot() {
        defer { tick += 1 }
        let seats = roster.members[schedule.conversation(of: tick)]
        guard !seats.isEmpty else { return }
        let due = start + schedule.ticks.offset(of: tick)
        let author = seats[Int(SplitMix.value(seed ^ 3, tick) % UInt64(seats.count))]
        if terms.types {
            let lead = Self.nanoseconds(Self.point(SplitMix.share(seed ^ 4, tick), in: ChatTerms.typingLead))
            if due >= start + lead {
                deeds.insert(ChatDeed(due: due - lead, kind: .typingBegins, subject: author, tick: tick))
                deeds.insert(ChatDeed(due: due, kind: .typingEnds, subject: author, tick: tick))
            }
        }
        for seat in seats where seat != author && SplitMix.share(seed ^ 5, tick, seat) < terms.readers {
            let delay = Self.point(SplitMix.share(seed ^ 6, tick, seat), in: ChatTerms.readingDelay)
            deeds.insert(ChatDeed(due: due + Self.nanoseconds(delay), kind: .receipt, subject: seat, tick: tick))
        }
    }

    private static func point(_ share: Double, in range: ClosedRange<Double>) -> Double {
        range.lowerBound + share * (range.upperBound - range.lowerBound)
    }

    private static func nanoseconds(_ seconds: Double) -> UInt64 { UInt64(seconds * 1e9) }
}
