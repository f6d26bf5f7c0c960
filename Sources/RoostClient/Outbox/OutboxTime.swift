/// Time and chance, passed in so that tests decide them.
package struct OutboxTime: Sendable {
    package let now: @Sendable () -> ContinuousClock.Instant
    /// Returns early, with an error, only when its task is cancelled.
    package let sleep: @Sendable (_ until: ContinuousClock.Instant) async throws -> Void
    /// In 0..<1.
    package let random: @Sendable () -> Double

    package init(
        now: @escaping @Sendable () -> ContinuousClock.Instant,
        sleep: @escaping @Sendable (ContinuousClock.Instant) async throws -> Void,
        random: @escaping @Sendable () -> Double
    ) {
        self.now = now
        self.sleep = sleep
        self.random = random
    }

    /// The continuous clock goes on while a phone sleeps, so a wait that ended meanwhile is over when it wakes.
    package static let real = OutboxTime(
        now: { .now }, sleep: { try await Task.sleep(until: $0, clock: .continuous) },
        random: { .random(in: 0..<1) })
}
