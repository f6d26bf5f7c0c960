import Dispatch
import Logging
import Ops
import Settings
import Synchronization

/// The output of the log: standard error, one line per event. Level and format may change at any time.
final class LogOutput: Sendable {
    static let standard = LogOutput()

    private struct State {
        var format = LogFormat.text
        var repeats = RepeatLimit()
    }

    private let state = Mutex(State())
    /// The newest lines, for the operator's page.
    let recent = RecentLog()
    private let rank = Atomic<Int>(Logger.Level.info.rank)

    /// The lowest level that is logged. May be set from any thread.
    var level: Logger.Level {
        get { Logger.Level.allCases[rank.load(ordering: .relaxed)] }
        set { rank.store(newValue.rank, ordering: .relaxed) }
    }

    /// Applies the level and the format of the configuration.
    func applySettings(_ configuration: RoostConfiguration) {
        level = Logger.Level(rawValue: configuration.logLevel) ?? .info
        let format = LogFormat(rawValue: configuration.logFormat) ?? .text
        state.withLock { $0.format = format }
    }

    func writeEvent(_ event: LogEvent, _ metadata: Logger.Metadata) {
        let now = Clock.now().unix
        let kind = RepeatLimit.Kind(file: event.file, line: event.line)
        let (verdict, format) = state.withLock { state in
            (state.repeats.admitLine(kind, event.level, at: now) { event.message.description }, state.format)
        }
        switch verdict {
        case .logged:
            let line = LogLine(time: now, event.level, event.message.description, event.source, metadata)
            recent.addLine(event.level, line.body)
            writeLine(line, format)
        case .firstSuppressed:
            // The number of suppressed lines has to be logged even if no further line of this kind follows.
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(RepeatLimit.span)) { self.logRest() }
        case .suppressed: break
        }
    }

    /// Logs the numbers of suppressed lines for seconds that are over.
    private func logRest() {
        let now = Clock.now().unix
        let (rest, format) = state.withLock { ($0.repeats.takeRest(at: now), $0.format) }
        for kind in rest { writeLine(LogLine(kind, at: now), format) }
    }

    /// Logs the numbers of suppressed lines so far; called before the process ends.
    func flush() {
        let (rest, format) = state.withLock { ($0.repeats.takeRest(at: .max), $0.format) }
        for kind in rest { writeLine(LogLine(kind, at: Clock.now().unix), format) }
    }

    private func writeLine(_ line: LogLine, _ format: LogFormat) {
        StandardError.write(format == .json ? line.json : line.text)
    }
}

extension Logger.Level {
    /// The level's rank, from 0 for trace.
    fileprivate var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

/// Passes log events to the one output. Loggers that were copied long ago follow the output's level, too.
struct LineLogHandler: LogHandler {
    let output: LogOutput
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    /// The level of this logger alone; nil if it follows the output's.
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
        output.writeEvent(event, all)
    }
}

/// The format of a log line.
enum LogFormat: String, Sendable {
    case text, json
}
