/// Limits the load that backends put on the hub: a share of a loop's time, refilled as time passes. A caller that has
/// used it up is told when to try again, so that no token keeps the loops walking over their channels all day.
///
/// Pure: times are passed in, in monotonic milliseconds; costs are in microseconds.
struct CallBudget {
    /// A tenth of a loop's time.
    static let perMillisecond = 100
    /// The greatest budget, which may be used at once.
    static let most = 1_000_000
    /// The least cost of a call: parsing, answering, and sending it to other hubs.
    static let least = 100
    /// The most simultaneous calls.
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

    mutating func startCall(at now: Int64) -> Verdict {
        refill(at: now)
        guard open < Self.mostOpen else { return .tooManyOpen }
        guard left > 0 else {
            return .spent(max(1, (-left + Self.perMillisecond * 1000) / (Self.perMillisecond * 1000)))
        }
        open += 1
        return .granted
    }

    /// Starts a call of the operator, which is never refused.
    mutating func startOperatorCall() { open += 1 }

    /// - Parameter cost: the cost for the hub that it cost most, times the number of hubs asked: each of them grants a
    ///   tenth, so together they cost no hub more.
    mutating func endCall(cost: Int, at now: Int64) {
        refill(at: now)
        open -= 1
        left -= max(Self.least, cost)
    }

    private mutating func refill(at now: Int64) {
        let passed = at == .min ? 0 : max(0, now - at)
        at = now
        // Capped: more time than the most expensive call needs to refill makes no difference.
        left = min(Self.most, left + Int(min(passed, 1 << 40)) * Self.perMillisecond)
    }
}
