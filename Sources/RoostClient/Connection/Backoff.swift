/// Waiting times between attempts: capped exponential, with full jitter, so that clients that lost the same hub do not
/// come back at the same moment.
public struct Backoff: Sendable {
    /// How long to wait.
    public struct Policy: Sendable, Equatable {
        /// The longest first wait.
        public var base: Duration
        /// The longest wait of all.
        public var cap: Duration
        /// What lived for so long counts as a success: the next wait is a first one again.
        public var stableAfter: Duration

        public init(
            base: Duration = .seconds(1), cap: Duration = .seconds(15), stableAfter: Duration = .seconds(10)
        ) {
            self.base = base
            self.cap = cap
            self.stableAfter = stableAfter
        }
    }

    package let policy: Policy
    package private(set) var attempts = 0

    package init(_ policy: Policy) { self.policy = policy }

    /// The longest that the next wait can be.
    package var ceiling: Duration {
        var ceiling = policy.base
        // Stops at the cap, so that no number of attempts overflows.
        for _ in 0..<attempts where ceiling < policy.cap { ceiling *= 2 }
        return min(ceiling, policy.cap)
    }

    /// - Parameter random: in 0..<1.
    package mutating func next(_ random: Double) -> Duration {
        let wait = ceiling * random
        attempts += 1
        return wait
    }

    /// Something that was established has ended.
    package mutating func ended(after lifetime: Duration) {
        if lifetime >= policy.stableAfter { attempts = 0 }
    }

    /// There is a reason to believe that the next attempt succeeds.
    package mutating func reset() { attempts = 0 }
}
