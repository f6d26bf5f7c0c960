import Logging
import Synchronization

/// Keeps what was logged.
struct LogBook: LogHandler {
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
        let book = LogBook()
        return (Logger(label: "test") { _ in book }, book.lines)
    }
}
