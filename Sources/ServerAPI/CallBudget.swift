/// What backends may cost the hub: so much time of a loop, which grows again with the time. Whoever has used it up is told when to come
/// again, so that no token makes the loops walk over their channels all day.
///
/// Pure: times are passed in, in monotonic milliseconds; costs are in microseconds.
struct CallBudget {
    /// A tenth of a loop's time.
    static let perMillisecond = 100
    /// What may be used at once.
    static let most = 1_000_000
    /// What a call costs at least: it is read, answered, and with others told other hubs.
    static let least = 100
    /// Calls that may be under way.
    static let mostOpen = 64

    private var left = CallBudget.most
    private var at = Int64.min
    private(set) var open = 0

    enum Verdict: Equatable {
        case granted
        /// Seconds until there is some budget again.
        case spent(Int)
        case tooManyOpen
    }

    mutating func begin(at now: Int64) -> Verdict {
        refill(at: now)
        guard open < Self.mostOpen else { return .tooManyOpen }
        guard left > 0 else {
            return .spent(max(1, (-left + Self.perMillisecond * 1000) / (Self.perMillisecond * 1000)))
        }
        open += 1
        return .granted
    }

    /// What the operator has done is not refused.
    mutating func enter() { open += 1 }

    /// - Parameter cost: of the hub that it cost most, times the hubs that it was asked of: each of them grants a tenth, so all together
    ///   cost no hub more.
    mutating func end(cost: Int, at now: Int64) {
        refill(at: now)
        open -= 1
        left -= max(Self.least, cost)
    }

    private mutating func refill(at now: Int64) {
        let passed = at == .min ? 0 : max(0, now - at)
        at = now
        // Longer than it takes to have all again after the dearest call counts no more.
        left = min(Self.most, left + Int(min(passed, 1 << 40)) * Self.perMillisecond)
    }
}
