/// When a batch is stored: at once while little comes, after up to 10 ms while much does.
///
/// A store of its own costs Postgres some 500 µs of CPU for each row, one of many rows 26 (measured). Pure; time is passed in.
package struct StorePacing: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// Up to so many rows in a second each is stored when it comes.
    private static let quietRate = 800.0
    /// What each row in a second beyond that adds to the wait, in seconds.
    private static let waitPerRate = 5e-6
    private static let longest = 0.010
    /// Over this time rows are counted, about, in seconds.
    private static let memory = 0.5

    private var rate = 0.0
    private var countedAt: Instant
    private var firstAt: Instant?

    package init(at now: Instant) { countedAt = now }

    /// There is something to store since `now`; only the first time counts until it is stored.
    package mutating func rowsCame(at now: Instant) { firstAt = firstAt ?? now }

    /// Nil while there is nothing to store.
    package var dueAt: Instant? { firstAt.map { $0 + wait } }

    package var wait: Duration {
        .seconds(min(Self.longest, max(0, rate - Self.quietRate) * Self.waitPerRate))
    }

    package mutating func stored(rows: Int, at now: Instant) {
        let passed = max(0.000_1, (now - countedAt) / .seconds(1))
        // As if rows faded with time: those of long ago count less.
        let kept = max(0, 1 - passed / Self.memory)
        rate = rate * kept + Double(rows) / max(passed, Self.memory)
        countedAt = now
        firstAt = nil
    }
}
