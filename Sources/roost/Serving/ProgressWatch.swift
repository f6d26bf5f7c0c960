import Dispatch
import Logging
import Ops
import Synchronization

/// Logs a standstill: nothing moves although work is waiting. The responsible thread is alive, but may be unable to
/// report it: in a statement without an end, or in a series of failures that look new each time.
final class ProgressWatch: Sendable {
    private let checks: @Sendable () -> [HealthCheck]
    private let logger: Logger
    /// The time at which each check's problem was last logged.
    private let said = Mutex<[String: ContinuousClock.Instant]>([:])

    private static let interval = DispatchTimeInterval.seconds(5)
    /// The pause between two log lines about the same problem.
    private static let silence = Duration.seconds(60)

    init(_ checks: @escaping @Sendable () -> [HealthCheck], logger: Logger) {
        self.checks = checks
        self.logger = logger
    }

    /// Checks every five seconds for the life of the process.
    func startChecking() {
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.interval) { [self] in
            checkProgress(at: .now)
            startChecking()
        }
    }

    func checkProgress(at now: ContinuousClock.Instant) {
        let checks = checks()
        said.withLock { said in
            for check in checks {
                guard let problem = check.problem else {
                    if said.removeValue(forKey: check.name) != nil {
                        logger.notice("What did not move moves again.", metadata: ["check": "\(check.name)"])
                    }
                    continue
                }
                if let before = said[check.name], now - before < Self.silence { continue }
                said[check.name] = now
                logger.warning(
                    "Nothing moves although something waits: \(problem).", metadata: ["check": "\(check.name)"])
            }
        }
    }
}
