import Hub
import Identity
import Logging
import Synchronization
import Testing
import Wire

/// The moment of the tests: 2,000 seconds after 1970 began.
let testTime = HubTime(monotonic: 0, unix: 2_000_000)

extension TokenVerifier {
    /// Why a token is refused; nil where it is let in.
    func refusal(_ token: String, at time: HubTime = testTime) -> Refusal? {
        do {
            _ = try verifyToken(token, at: time)
            return nil
        } catch {
            return error
        }
    }
}

/// Waits for a condition, never for a length of time: gives up after so many looks, which are few where the machine is
/// busy with other tests.
func eventually(
    _ what: Comment, looks: Int = 5000, sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () -> Bool
) async throws {
    var left = looks
    while !condition() {
        left -= 1
        try #require(left > 0, what, sourceLocation: sourceLocation)
        try await Task.sleep(for: .milliseconds(5))
    }
}

/// Keeps what was logged.
struct LogRecorder: LogHandler {
    final class Lines: Sendable {
        private let lines = Mutex<[String]>([])

        var all: [String] { lines.withLock { $0 } }
        fileprivate func add(_ line: String) { lines.withLock { $0.append(line) } }
    }

    let lines = Lines()
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(
        level: Logger.Level, message: Logger.Message, metadata: Logger.Metadata?, source: String, file: String,
        function: String, line: UInt
    ) {
        lines.add("\(level): \(message)")
    }

    /// A logger, and where its lines go.
    static func open() -> (Logger, Lines) {
        let recorder = LogRecorder()
        return (Logger(label: "test") { _ in recorder }, recorder.lines)
    }
}
