import Dispatch
import Logging
import Ops
import Synchronization

/// Says in the log that nothing moves although something waits. The thread that ought to move it lives, and may be where it
/// says nothing: in a statement without an end, or in a round of failures that looks new each time.
final class ProgressWatch: Sendable {
    private let checks: @Sendable () -> [HealthCheck]
    private let logger: Logger
    /// When each check's problem was last said.
    private let said = Mutex<[String: ContinuousClock.Instant]>([:])

    private static let interval = DispatchTimeInterval.seconds(5)
    /// Between two sentences about the same.
    private static let silence = Duration.seconds(60)

    init(_ checks: @escaping @Sendable () -> [HealthCheck], logger: Logger) {
        self.checks = checks
        self.logger = logger
    }

    /// Looks every five seconds for as long as the process lives.
    func begin() {
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.interval) { [self] in
            look(at: .now)
            begin()
        }
    }

    func look(at now: ContinuousClock.Instant) {
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
