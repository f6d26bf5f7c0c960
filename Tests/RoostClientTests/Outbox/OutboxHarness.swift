import Foundation
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
        var watchers: [(until: ContinuousClock.Instant, watcher: CheckedContinuation<Void, Never>)] = []
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
        await withCheckedContinuation { watcher in
            let isSo = state.withLock { state in
                let until = state.now + duration
                if state.sleepers.values.contains(where: { $0.until == until }) { return true }
                state.watchers.append((until, watcher))
                return false
            }
            if isSo { watcher.resume() }
        }
    }

    private func sleep(_ until: ContinuousClock.Instant) async throws {
        let number = state.withLock { state in
            state.count += 1
            return state.count
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { wake in
                let (outcome, watchers) = state.withLock {
                    state -> (Result<Void, any Error>?, [CheckedContinuation<Void, Never>]) in
                    if state.cancelled.remove(number) != nil { return (.failure(CancellationError()), []) }
                    if until <= state.now { return (.success(()), []) }
                    state.sleepers[number] = Sleeper(until: until, wake: wake)
                    let watchers = state.watchers.filter { $0.until == until }.map(\.watcher)
                    state.watchers.removeAll { $0.until == until }
                    return (nil, watchers)
                }
                for watcher in watchers { watcher.resume() }
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

struct Draft: Codable, Sendable, Equatable {
    var text: String
}

/// Where the sends of a test end up: each waits until the test answers it, or until it is cancelled.
final class ManualServer: Sendable {
    struct Call: Sendable {
        let item: OutboxItem<Draft>
        private let reply: AsyncThrowingStream<Void, any Error>.Continuation

        fileprivate init(_ item: OutboxItem<Draft>, _ reply: AsyncThrowingStream<Void, any Error>.Continuation) {
            self.item = item
            self.reply = reply
        }

        func succeed() { reply.finish() }
        func fail(_ error: any Error) { reply.finish(throwing: error) }
    }

    struct Offline: Error, CustomStringConvertible {
        let description = "offline"
    }

    struct Forbidden: Error {}

    private let calls: AsyncStream<Call>
    private let incoming: AsyncStream<Call>.Continuation
    private let cancellations: AsyncStream<UUID>
    private let cancellationLog: AsyncStream<UUID>.Continuation
    private let counts = Mutex((running: 0, cancelled: 0))

    init() {
        (calls, incoming) = AsyncStream.makeStream(of: Call.self)
        (cancellations, cancellationLog) = AsyncStream.makeStream(of: UUID.self)
    }

    var running: Int { counts.withLock { $0.running } }
    var cancelled: Int { counts.withLock { $0.cancelled } }

    /// The next send that has begun.
    func next() async -> Call? { await calls.first { _ in true } }

    /// The next send that was cancelled.
    func nextCancelled() async -> UUID? { await cancellations.first { _ in true } }

    func send(_ item: OutboxItem<Draft>) async throws {
        counts.withLock { $0.running += 1 }
        defer { counts.withLock { $0.running -= 1 } }
        let (answer, reply) = AsyncThrowingStream.makeStream(of: Void.self)
        incoming.yield(Call(item, reply))
        for try await _ in answer {}
        if Task.isCancelled {
            counts.withLock { $0.cancelled += 1 }
            cancellationLog.yield(item.localID)
            throw CancellationError()
        }
    }

    @Sendable static func classify(_ error: any Error, _ item: OutboxItem<Draft>) -> OutboxVerdict {
        error is Forbidden ? .reject("not allowed") : .retry
    }
}

/// What survives.
final class Disk {
    var entries: [UUID: OutboxEntry] = [:]
}

/// A storage that fails, or whose process dies, before or after a write has taken effect.
final class DyingStorage: OutboxStorage {
    struct Failure: Error {}

    enum Plan {
        case work, dieBefore, dieAfter, failBefore, failAfter
    }

    private let disk: Disk
    /// For the next write.
    var plan = Plan.work
    private(set) var isDead = false
    private(set) var hasFailed = false

    init(_ disk: Disk) { self.disk = disk }

    func load() -> [OutboxEntry] { Array(disk.entries.values) }

    func save(_ entry: OutboxEntry) throws { try write { $0.entries[entry.localID] = entry } }

    func remove(_ localID: UUID) throws { try write { $0.entries[localID] = nil } }

    private func write(_ change: (Disk) -> Void) throws {
        let plan = isDead ? .dieBefore : self.plan
        self.plan = .work
        if plan == .work || plan == .dieAfter || plan == .failAfter { change(disk) }
        isDead = isDead || plan == .dieBefore || plan == .dieAfter
        hasFailed = hasFailed || plan == .failBefore || plan == .failAfter
        if plan != .work { throw Failure() }
    }
}

/// A folder that goes with its test.
final class TemporaryFolder {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("roost-outbox-\(UUID())")

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    deinit {
        do { try FileManager.default.removeItem(at: folder) } catch {
            // The system empties its folder for such files.
        }
    }

    var file: URL { folder.appendingPathComponent("outbox") }

    func bytes() throws -> Data { try Data(contentsOf: file) }
}
