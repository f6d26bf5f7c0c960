import HeapModule

/// Something that a member of a conversation is about to do.
struct ChatAction: Comparable {
    enum Kind: Int {
        case typingBegins, typingEnds, receipt, departure, comeback
    }
    let due: UInt64
    let kind: Kind
    /// Whose action it is: a membership, or for `departure` and `comeback` a socket's slot.
    let subject: Int
    /// The tick of the row that it is about.
    var tick = 0

    static func < (one: ChatAction, other: ChatAction) -> Bool {
        (one.due, one.kind.rawValue, one.subject) < (other.due, other.kind.rawValue, other.subject)
    }
}

/// Who does what when in a worker's conversations; the same for the same seed.
struct ChatScript {
    private let chat: ChatPlan
    private let roster: Roster
    private let schedule: RowSchedule
    private let seed: UInt64
    private var actions = Heap<ChatAction>()
    private var start: UInt64 = .max
    private var tick = 0
    private var departures: Schedule
    private var departure = 0

    init(_ plan: LoadPlan, _ roster: Roster, _ schedule: RowSchedule, worker: Int) {
        chat = plan.chat
        self.roster = roster
        self.schedule = schedule
        seed = plan.seed &+ UInt64(worker) &* 0x1_0001
        departures = Schedule(
            rate: chat.churn * Double(roster.numbers.count) / 60, seconds: plan.warmUp + plan.seconds)
    }

    mutating func begin(at moment: UInt64) { start = moment }
    mutating func stop() { (start, actions) = (.max, Heap()) }

    var nextDue: UInt64 {
        guard start != .max else { return .max }
        return min(actions.min?.due ?? .max, nextRowPlan, nextDeparture)
    }

    /// When the actions around the next row have to be known.
    private var nextRowPlan: UInt64 {
        guard tick < schedule.ticks.total, chat.types || chat.readers > 0 else { return .max }
        let due = start + schedule.ticks.offset(of: tick), lead = Self.nanoseconds(ChatPlan.typingLead.upperBound)
        return due > lead ? due - lead : 0
    }

    private var nextDeparture: UInt64 {
        departure < departures.total ? start + departures.offset(of: departure) : .max
    }

    /// The next action whose time has come.
    mutating func next(at now: UInt64) -> ChatAction? {
        guard start != .max else { return nil }
        while nextRowPlan <= now { planRow() }
        while nextDeparture <= now {
            let slot = Int(SplitMix.value(seed ^ 1, departure) % UInt64(roster.numbers.count))
            actions.insert(ChatAction(due: nextDeparture, kind: .departure, subject: slot))
            departure += 1
        }
        guard let action = actions.min, action.due <= now else { return nil }
        return actions.removeMin()
    }

    mutating func comeback(of slot: Int, after now: UInt64) {
        let share = SplitMix.share(seed ^ 2, slot, departure)
        actions.insert(
            ChatAction(
                due: now + Self.nanoseconds(Self.point(share, in: ChatPlan.absence)), kind: .comeback, subject: slot))
    }

    /// The author types, sends the row, and the others confirm it.
    private mutating func planRow() {
        defer { tick += 1 }
        let memberships = roster.members[schedule.conversation(of: tick)]
        guard !memberships.isEmpty else { return }
        let due = start + schedule.ticks.offset(of: tick)
        let author = memberships[Int(SplitMix.value(seed ^ 3, tick) % UInt64(memberships.count))]
        if chat.types {
            let lead = Self.nanoseconds(Self.point(SplitMix.share(seed ^ 4, tick), in: ChatPlan.typingLead))
            if due >= start + lead {
                actions.insert(ChatAction(due: due - lead, kind: .typingBegins, subject: author, tick: tick))
                actions.insert(ChatAction(due: due, kind: .typingEnds, subject: author, tick: tick))
            }
        }
        for membership in memberships
        where membership != author && SplitMix.share(seed ^ 5, tick, membership) < chat.readers {
            let delay = Self.point(SplitMix.share(seed ^ 6, tick, membership), in: ChatPlan.readingDelay)
            actions.insert(
                ChatAction(due: due + Self.nanoseconds(delay), kind: .receipt, subject: membership, tick: tick))
        }
    }

    private static func point(_ share: Double, in range: ClosedRange<Double>) -> Double {
        range.lowerBound + share * (range.upperBound - range.lowerBound)
    }

    private static func nanoseconds(_ seconds: Double) -> UInt64 { UInt64(seconds * 1e9) }
}
