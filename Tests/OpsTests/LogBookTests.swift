import Logging
import Ops
import Synchronization
import Testing

/// Keeps what it is given, as the log's own target.
private struct Target: LogHandler {
    final class Lines: Sendable {
        let all = Mutex<[String]>([])
    }
    let lines: Lines
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    var logLevel = Logger.Level.critical

    func log(event: LogEvent) { lines.all.withLock { $0.append("\(event.message)") } }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }
}

@Suite struct LogBookTests {
    private let lines = Target.Lines()
    private let book = LogBook(level: .info)
    private var logger: Logger { book.logger(label: "test", to: Target(lines: lines)) }

    @Test func warningsAreNotedAndAllIsPassedOn() {
        logger.info("one")
        logger.warning("two")
        logger.debug("three")
        #expect(lines.all.withLock { $0 } == ["one", "two"])
        #expect(book.lines(after: 0).map(\.text) == ["two"])
        #expect(book.lines(after: 1).isEmpty)
    }

    @Test func theLevelChangesForLoggersThatAreThere() {
        let old = logger
        book.level = .debug
        old.debug("now")
        book.level = .error
        old.warning("not now")
        #expect(lines.all.withLock { $0 } == ["now"])
    }

    @Test func theLastHundredAreKept() {
        for number in 1...250 { logger.error("\(number)") }
        #expect(book.lines(after: 0).map(\.number) == Array(151...250))
        #expect(book.lines(after: 248).map(\.text) == ["249", "250"])
    }

    @Test func tokensAreHidden() {
        logger.warning("what is eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln doing here")
        #expect(book.lines(after: 0).map(\.text) == ["what is *** doing here"])
    }
}
