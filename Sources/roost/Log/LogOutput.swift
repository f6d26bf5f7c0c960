import Dispatch
import Logging
import Ops
import Settings
import Synchronization

/// Where the log goes: standard error, a line for each event. Its level and its format may change at any time.
final class LogOutput: Sendable {
    static let standard = LogOutput()

    private struct State {
        var format = LogFormat.text
        var repeats = RepeatLimit()
    }

    private let state = Mutex(State())
    /// What was said last that operators should know.
    let book = LogBook()
    private let rank = Atomic<Int>(Logger.Level.info.rank)

    /// From here on only this and what is worse is said.
    var level: Logger.Level {
        get { Logger.Level.allCases[rank.load(ordering: .relaxed)] }
        set { rank.store(newValue.rank, ordering: .relaxed) }
    }

    /// What the configuration says of the log.
    func adopt(_ configuration: RoostConfiguration) {
        level = Logger.Level(rawValue: configuration.logLevel) ?? .info
        let format = LogFormat(rawValue: configuration.logFormat) ?? .text
        state.withLock { $0.format = format }
    }

    func write(_ event: LogEvent, _ metadata: Logger.Metadata) {
        let now = Clock.now().unix
        let kind = RepeatLimit.Kind(file: event.file, line: event.line)
        let (verdict, format) = state.withLock { state in
            (state.repeats.judge(kind, event.level, at: now) { event.message.description }, state.format)
        }
        switch verdict {
        case .told:
            book.note(event.level, event.message.description)
            write(LogLine(time: now, event.level, event.message.description, event.source, metadata), format)
        case .firstUntold:
            // Somebody has to tell how many there were, also where none follows.
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(RepeatLimit.span)) { self.tellRest() }
        case .untold: break
        }
    }

    /// What was left out in seconds that are over.
    private func tellRest() {
        let now = Clock.now().unix
        let (rest, format) = state.withLock { ($0.repeats.takeRest(at: now), $0.format) }
        for kind in rest { write(LogLine(kind, at: now), format) }
    }

    /// What was left out so far, before the process ends.
    func flush() {
        let (rest, format) = state.withLock { ($0.repeats.takeRest(at: .max), $0.format) }
        for kind in rest { write(LogLine(kind, at: Clock.now().unix), format) }
    }

    private func write(_ line: LogLine, _ format: LogFormat) {
        StandardError.write(format == .json ? line.json : line.text)
    }
}

extension Logger.Level {
    /// From 0, trace.
    fileprivate var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

/// Brings what is logged to the one output. A logger that was copied long ago follows the output's level all the same.
struct LineLogHandler: LogHandler {
    let output: LogOutput
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    /// Of this logger alone, where somebody set one.
    private var ownLevel: Logger.Level?

    init(output: LogOutput) {
        self.output = output
    }

    var logLevel: Logger.Level {
        get { ownLevel ?? output.level }
        set { ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var all = metadata
        if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
        if let explicit = event.metadata { all.merge(explicit) { $1 } }
        if let error = event.error { all["error"] = .string("\(error)") }
        output.write(event, all)
    }
}

/// How a line of the log is written.
enum LogFormat: String, Sendable {
    case text, json
}
