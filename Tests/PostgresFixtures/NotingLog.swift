import Logging

extension Logger {
    /// Keeps what is logged.
    static func noting(_ notes: Notes) -> Logger { Logger(label: "feed") { _ in NotingLog(notes: notes) } }
}

private struct NotingLog: LogHandler {
    let notes: Notes
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { notes.add("\(event.level): \(event.message)") }
}
