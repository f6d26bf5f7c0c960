import Glibc
import Logging
import Push
import Synchronization

/// `roost push`: sends, and prints a line of JSON for what became of each.
struct PushErrand {
    private let configuration: APNsConfiguration
    private let logger: Logger
    /// How long answers may take once the user has had enough.
    private static let lastAnswers: Duration = .seconds(5)

    init(_ configuration: APNsConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    private struct Progress {
        var finished = 0
        var areAllDelivered = true
    }

    /// - Returns: whether all were delivered.
    /// - Throws: whatever `next` throws, once those before it have ended.
    func run(_ next: () throws -> Push?) async throws -> Bool {
        Signals.listen(to: [SIGINT, SIGTERM])
        let progress = Shared()
        let client = PushClient(configuration, logger: logger) { finished in
            for (push, outcome) in finished { StandardOutput.line(outcome.line(for: push.id)) }
            progress.state.withLock { state in
                state.finished += finished.count
                state.areAllDelivered = state.areAllDelivered && finished.allSatisfy { $0.1 == .delivered }
            }
        }
        client.start()
        var sent = 0
        var failure: (any Error)?
        do {
            while !Signals.wasInterrupted {
                guard client.room > 0 else {
                    try await Task.sleep(for: .milliseconds(5))
                    continue
                }
                guard let push = try next() else { break }
                client.send([push])
                sent += 1
            }
        } catch {
            failure = error
        }
        while !Signals.wasInterrupted, progress.state.withLock({ $0.finished }) < sent {
            try await Task.sleep(for: .milliseconds(5))
        }
        client.stop(within: Self.lastAnswers)
        if let failure { throw failure }
        return progress.state.withLock { $0.areAllDelivered }
    }

    private final class Shared: Sendable {
        let state = Mutex(Progress())
    }
}
