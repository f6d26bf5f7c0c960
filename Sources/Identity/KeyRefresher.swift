package import Hub
package import Logging
import Synchronization
package import Wire

/// A verifier with current keys: they are read at the start, when the file changes, from the URL every few minutes, and
/// when a token names an unknown key.
package final class KeyRefresher: TokenVerifier {
    private let verifier: JWTVerifier
    private let signal: RefreshSignal
    private let logger: Logger
    private let state: Mutex<State>

    private struct State {
        /// Runs for the life of this object, and is the only task that installs keys.
        var refreshing: Task<Void, Never>?
        /// Nil if only a reload can change the keys.
        var timer: Task<Void, Never>?
        var next: Successor?
        var isStopped = false
    }

    /// Sources that replace the current ones, with a continuation for when they are in force.
    private struct Successor {
        let sources: KeySources
        let isInForce: CheckedContinuation<Void, Never>
    }

    /// - Throws: `KeyProblem` if the file cannot be used. An unreachable URL is no error: the hub starts, and keeps
    ///   trying.
    package static func open(_ settings: KeySettings, logger: Logger) async throws(KeyProblem) -> KeyRefresher {
        let signal = RefreshSignal()
        let verifier = JWTVerifier(ActiveKeys([]), rules: settings.rules) { signal.requestKeys() }
        var sources = KeySources(settings, verifier: verifier, logger: logger)
        try await sources.readAll()
        sources.installKeys()
        return KeyRefresher(sources, verifier, signal, logger)
    }

    private init(_ sources: KeySources, _ verifier: JWTVerifier, _ signal: RefreshSignal, _ logger: Logger) {
        self.verifier = verifier
        self.signal = signal
        self.logger = logger
        state = Mutex(State())
        let refreshing = Task { [weak self] in
            var sources = sources
            for await _ in signal.wakeUps {
                if let next = self?.takeNext() {
                    var successor = next.sources
                    successor.keepKeys(of: sources)
                    sources = successor
                    sources.installKeys()
                    next.isInForce.resume()
                } else if sources.mayChange {
                    await sources.refreshKeys(signal)
                } else {
                    signal.clearRequest()
                }
            }
        }
        state.withLock { $0.refreshing = refreshing }
        setTimer(sources)
    }

    deinit { stop() }

    package func verifyToken(_ token: String, at now: HubTime) throws(Refusal) -> Claims {
        try verifier.verifyToken(token, at: now)
    }

    /// Applies other sources and rules, which are in force when it returns. Waits for a URL once.
    ///
    /// - Throws: `KeyProblem` if the file cannot be used; then nothing changes.
    package func applySettings(_ settings: KeySettings) async throws(KeyProblem) {
        var sources = KeySources(settings, verifier: verifier, logger: logger)
        try await sources.readAll()
        let (ready, signal) = (sources, signal)
        await withCheckedContinuation { continuation in
            let isTaken = state.withLock { state in
                guard !state.isStopped, state.next == nil else { return false }
                state.next = Successor(sources: ready, isInForce: continuation)
                return true
            }
            guard isTaken else { return continuation.resume() }
            signal.wake()
        }
        setTimer(ready)
    }

    /// Stops refreshing; the keys stay as they are.
    package func stop() {
        let next = state.withLock { state in
            defer { state = State(isStopped: true) }
            state.refreshing?.cancel()
            state.timer?.cancel()
            return state.next
        }
        next?.isInForce.resume()
    }

    private func takeNext() -> Successor? {
        state.withLock { state in
            defer { state.next = nil }
            return state.next
        }
    }

    private func setTimer(_ sources: KeySources) {
        let (signal, interval) = (signal, sources.intervals.look)
        let timer: Task<Void, Never>? =
            !sources.mayChange
            ? nil
            : Task {
                while !Task.isCancelled {
                    do { try await Task.sleep(for: interval) } catch { return }
                    signal.wake()
                }
            }
        state.withLock { state in
            state.timer?.cancel()
            state.timer = state.isStopped ? nil : timer
            if state.isStopped { timer?.cancel() }
        }
    }
}

/// Wakes the task that refreshes keys: by the timer, and when a token names an unknown key.
///
/// Callable from any thread; never waits. Any number of requests before the task runs count as one.
final class RefreshSignal: Sendable {
    let wakeUps: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation
    private let wanted = Atomic<Bool>(false)

    init() {
        (wakeUps, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Wakes the task to check for due work.
    func wake() { continuation.yield() }

    /// Requests keys that are not known yet.
    func requestKeys() {
        if !wanted.exchange(true, ordering: .relaxed) { continuation.yield() }
    }

    /// Whether keys were requested since the last `clearRequest`.
    var isRequested: Bool { wanted.load(ordering: .relaxed) }

    func clearRequest() { wanted.store(false, ordering: .relaxed) }
}
