/// Decides when a batch is stored: at once at low rates, after up to 10 ms at high ones.
///
/// Storing each row by itself costs Postgres about 500 µs of CPU per row, storing many together 26 µs (measured). Pure;
/// time is passed in.
package struct StorePacing: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// Up to this many rows per second, each is stored when it arrives.
    private static let quietRate = 800.0
    /// The wait that each further row per second adds, in seconds.
    private static let waitPerRate = 5e-6
    private static let longest = 0.010
    /// The approximate window of the rate, in seconds.
    private static let memory = 0.5

    private var rate = 0.0
    private var countedAt: Instant
    private var firstAt: Instant?

    package init(at now: Instant) { countedAt = now }

    /// Notes that rows have waited to be stored since `now`. Only the first call counts until they are stored.
    package mutating func rowsCame(at now: Instant) { firstAt = firstAt ?? now }

    /// Nil while there is nothing to store.
    package var dueAt: Instant? { firstAt.map { $0 + wait } }

    package var wait: Duration {
        .seconds(min(Self.longest, max(0, rate - Self.quietRate) * Self.waitPerRate))
    }

    package mutating func noteStored(rows: Int, at now: Instant) {
        let passed = max(0.000_1, (now - countedAt) / .seconds(1))
        // Rows fade linearly with time: older ones count less.
        let kept = max(0, 1 - passed / Self.memory)
        rate = rate * kept + Double(rows) / max(passed, Self.memory)
        countedAt = now
        firstAt = nil
    }
}
