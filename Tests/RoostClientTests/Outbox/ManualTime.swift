import RoostClient
import Synchronization

/// A time that stands still until a test moves it. Chance is always a half.
final class ManualTime: Sendable {
    private struct Sleeper {
        let until: ContinuousClock.Instant
        let wake: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = ContinuousClock.now
        var count = 0
        var sleepers: [Int: Sleeper] = [:]
        /// Those who were cancelled before they fell asleep.
        var cancelled: Set<Int> = []
        var watchers: [(until: ContinuousClock.Instant, tell: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var outboxTime: OutboxTime { OutboxTime(now: { self.now }, sleep: { try await self.sleep($0) }, random: { 0.5 }) }

    var now: ContinuousClock.Instant { state.withLock { $0.now } }

    var sleeping: Int { state.withLock { $0.sleepers.count } }

    func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now += duration
            let due = state.sleepers.filter { $0.value.until <= state.now }
            for number in due.keys { state.sleepers[number] = nil }
            return due.values.map(\.wake)
        }
        for wake in due { wake.resume() }
    }

    /// Returns when somebody sleeps for that long.
    func someoneSleeps(for duration: Duration) async {
        await withCheckedContinuation { tell in
            let isSo = state.withLock { state in
                let until = state.now + duration
                if state.sleepers.values.contains(where: { $0.until == until }) { return true }
                state.watchers.append((until, tell))
                return false
            }
            if isSo { tell.resume() }
        }
    }

    private func sleep(_ until: ContinuousClock.Instant) async throws {
        let number = state.withLock { state in
            state.count += 1
            return state.count
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { wake in
                let (outcome, told) = state.withLock {
                    state -> (Result<Void, any Error>?, [CheckedContinuation<Void, Never>]) in
                    if state.cancelled.remove(number) != nil { return (.failure(CancellationError()), []) }
                    if until <= state.now { return (.success(()), []) }
                    state.sleepers[number] = Sleeper(until: until, wake: wake)
                    let told = state.watchers.filter { $0.until == until }.map(\.tell)
                    state.watchers.removeAll { $0.until == until }
                    return (nil, told)
                }
                for tell in told { tell.resume() }
                if let outcome { wake.resume(with: outcome) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                guard let sleeper = state.sleepers.removeValue(forKey: number) else {
                    state.cancelled.insert(number)
                    return nil as Sleeper?
                }
                return sleeper
            }
            sleeper?.wake.resume(throwing: CancellationError())
        }
    }
}
