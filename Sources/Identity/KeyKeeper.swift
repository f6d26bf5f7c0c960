package import Hub
package import Logging
import Synchronization
package import Wire

/// Keeps a gate's keys current: reads them at the start, when the file changes, every few minutes from the URL, and when
/// a token names a key that nobody knows.
package final class KeyKeeper: TokenVerifier {
    private let gate: TokenGate
    private let bell: Bell
    private let logger: Logger
    private let state: Mutex<State>

    private struct State {
        /// Goes its rounds for as long as the keeper lives, so that nothing but it ever installs keys.
        var rounds: Task<Void, Never>?
        /// Nil where nothing but a reload can change the keys.
        var clock: Task<Void, Never>?
        var next: Successor?
        var isStopped = false
    }

    /// What takes the place of the round that is going on, and whom to tell when it has.
    private struct Successor {
        let round: KeyRound
        let isInForce: CheckedContinuation<Void, Never>
    }

    /// - Throws: `KeyProblem` where the file cannot be used. A URL that cannot be reached is no error: the hub starts, and
    ///   goes on trying.
    package static func open(_ settings: KeySettings, logger: Logger) async throws(KeyProblem) -> KeyKeeper {
        let bell = Bell()
        let gate = TokenGate(KeyRing([]), rules: settings.rules) { bell.ring() }
        var round = KeyRound(settings, gate: gate, logger: logger)
        try await round.read()
        round.install()
        return KeyKeeper(round, gate, bell, logger)
    }

    private init(_ round: KeyRound, _ gate: TokenGate, _ bell: Bell, _ logger: Logger) {
        self.gate = gate
        self.bell = bell
        self.logger = logger
        state = Mutex(State())
        let rounds = Task { [weak self] in
            var round = round
            for await _ in bell.strokes {
                if let next = self?.takeNext() {
                    var successor = next.round
                    successor.keepKeys(of: round)
                    round = successor
                    round.install()
                    next.isInForce.resume()
                } else if round.mayChange {
                    await round.go(bell)
                } else {
                    bell.answer()
                }
            }
        }
        state.withLock { $0.rounds = rounds }
        setClock(round)
    }

    deinit { stop() }

    package func verify(_ token: String, at now: HubTime) throws(Refusal) -> Claims {
        try gate.verify(token, at: now)
    }

    /// Takes the keys from elsewhere, and asks of tokens something else, from the moment that it returns.
    ///
    /// - Throws: `KeyProblem` where the file cannot be used; then all stays as it was. Waits for a URL once.
    package func adopt(_ settings: KeySettings) async throws(KeyProblem) {
        var round = KeyRound(settings, gate: gate, logger: logger)
        try await round.read()
        let (ready, bell) = (round, bell)
        await withCheckedContinuation { continuation in
            let isTaken = state.withLock { state in
                guard !state.isStopped, state.next == nil else { return false }
                state.next = Successor(round: ready, isInForce: continuation)
                return true
            }
            guard isTaken else { return continuation.resume() }
            bell.tick()
        }
        setClock(ready)
    }

    /// The keys stay as they are from here on.
    package func stop() {
        let next = state.withLock { state in
            defer { state = State(isStopped: true) }
            state.rounds?.cancel()
            state.clock?.cancel()
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

    private func setClock(_ round: KeyRound) {
        let (bell, pause) = (bell, round.rhythm.look)
        let clock: Task<Void, Never>? =
            !round.mayChange
            ? nil
            : Task {
                while !Task.isCancelled {
                    do { try await Task.sleep(for: pause) } catch { return }
                    bell.tick()
                }
            }
        state.withLock { state in
            state.clock?.cancel()
            state.clock = state.isStopped ? nil : clock
            if state.isStopped { clock?.cancel() }
        }
    }
}
