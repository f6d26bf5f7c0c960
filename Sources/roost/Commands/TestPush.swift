import Hub
import Logging
import Push
import Synchronization

/// A push that `roost doctor` sends to test a service.
struct TestPush {
    private let service: PushServiceConfiguration
    private let target: Push.Target
    private let payload: String

    init(_ service: PushServiceConfiguration, to target: Push.Target, _ payload: String) {
        var service = service
        service.limits.waitsWhenKeyIsRefused = false
        service.limits.answerTimeout = .seconds(5)
        self.service = service
        self.target = target
        self.payload = payload
    }

    /// - Returns: its outcome; nil if that is not known in time.
    func send(within patience: Duration) async -> (push: Push?, outcome: PushOutcome?, statistics: PushStatistics) {
        var quiet = Logger(label: "doctor") { _ in SwiftLogNoOpLogHandler() }
        quiet.logLevel = .critical
        let answer = Answer()
        let client = PushClient(service, logger: quiet) { done in answer.value.withLock { $0 = done.first } }
        client.start()
        client.send([
            Push(
                to: target, type: .alert, priority: 10, expiration: 0, payload: Array(payload.utf8),
                deadline: Clock.now().unix + Int64(patience / .milliseconds(1)))
        ])
        let end = ContinuousClock.now + patience
        while answer.value.withLock({ $0 }) == nil, ContinuousClock.now < end {
            do { try await Task.sleep(for: .milliseconds(20)) } catch { break }
        }
        let statistics = client.statistics
        client.stop(within: .zero)
        let (push, outcome) = answer.value.withLock { $0.map { ($0.0, $0.1) } } ?? (nil, nil)
        return (push, outcome, statistics)
    }

    private final class Answer: Sendable {
        let value = Mutex<(Push, PushOutcome)?>(nil)
    }
}
