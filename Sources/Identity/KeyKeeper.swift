package import Hub
package import Logging
import Synchronization
package import Wire

/// Keeps a gate's keys current: reads them at the start, when the file changes, every few minutes from the URL, and when
/// a token names a key that nobody knows.
package final class KeyKeeper: TokenVerifier {
    private let gate: TokenGate
    private let bell: Bell
    private let tasks: Mutex<[Task<Void, Never>]>

    /// - Throws: `KeyProblem` where the file cannot be used. A URL that cannot be reached is no error: the hub starts, and
    ///   goes on trying.
    package static func open(_ settings: KeySettings, logger: Logger) async throws(KeyProblem) -> KeyKeeper {
        let bell = Bell()
        let gate = TokenGate(KeyRing([]), rules: settings.rules) { bell.ring() }
        var round = KeyRound(settings, gate: gate, logger: logger)
        try await round.begin()
        return KeyKeeper(round, bell, rhythm: settings.rhythm)
    }

    private init(_ round: KeyRound, _ bell: Bell, rhythm: KeySettings.Rhythm) {
        gate = round.gate
        self.bell = bell
        guard round.mayChange else {
            tasks = Mutex([])
            return
        }
        let clock = Task {
            while !Task.isCancelled {
                do { try await Task.sleep(for: rhythm.look) } catch { return }
                bell.tick()
            }
        }
        let rounds = Task {
            var round = round
            for await _ in bell.strokes { await round.go(bell) }
        }
        tasks = Mutex([clock, rounds])
    }

    deinit { stop() }

    package func verify(_ token: String, at now: HubTime) throws(Refusal) -> Claims {
        try gate.verify(token, at: now)
    }

    /// The keys stay as they are from here on.
    package func stop() {
        tasks.withLock { tasks in
            for task in tasks { task.cancel() }
            tasks = []
        }
    }
}
