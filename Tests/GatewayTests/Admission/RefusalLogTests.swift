import Gateway
import Logging
import Synchronization
import Testing

/// Nobody fills the log, or the memory, with refusals.
@Suite struct RefusalLogTests {
    /// Keeps what is logged.
    private final class Lines: LogHandler, Sendable {
        let lines = Mutex<[String]>([])
        var metadata: Logger.Metadata {
            get { [:] }
            set {}
        }
        var logLevel: Logger.Level {
            get { .info }
            set {}
        }
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { nil }
            set {}
        }

        func log(event: LogEvent) {
            let facts = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            lines.withLock { $0.append(([event.message.description] + facts).joined(separator: " ")) }
        }

        func take() -> [String] {
            lines.withLock { lines in
                defer { lines = [] }
                return lines
            }
        }
    }

    private let lines = Lines()
    private var logger: Logger { Logger(label: "test") { [lines] _ in lines } }

    private func tell(
        _ log: inout RefusalLog, _ address: String?, _ reason: String = "token", why: String = "w", at second: Int32 = 0
    ) {
        log.tell("refused", reason: reason, why: why, of: address.flatMap { IPAddress($0) }, at: second, logger)
    }

    @Test func theFirstIsToldAtOnceAndTheRestOnceAMinute() {
        var log = RefusalLog()
        for second in Int32(0)..<50 { tell(&log, "192.0.2.1", at: second) }
        #expect(lines.take() == ["refused peer=192.0.2.1 reason=token why=w"])
        tell(&log, "192.0.2.1", "limit", at: 50)
        tell(&log, "192.0.2.2", at: 50)
        #expect(lines.take().count == 2, "another reason and another address are other matters")
        log.secondGoesBy(59, logger)
        #expect(lines.take() == [])
        log.secondGoesBy(60, logger)
        #expect(lines.take() == ["refused again=49 peer=192.0.2.1 reason=token why=w"])
        for second in Int32(61)..<200 { log.secondGoesBy(second, logger) }
        #expect(lines.take() == [])
        tell(&log, "192.0.2.1", at: 200)
        #expect(lines.take().count == 1, "it is forgotten, and told at once")
    }

    /// One reason has several sentences: the first is not what all the others were refused for.
    @Test func eachSentenceIsToldWithItsNumber() {
        var log = RefusalLog()
        tell(&log, "192.0.2.1", why: "expired 5 seconds ago")
        _ = lines.take()
        for second in Int32(1)..<4 { tell(&log, "192.0.2.1", why: "expired \(second) seconds ago", at: second) }
        for _ in 0..<7 { tell(&log, "192.0.2.1", why: "wrong signature", at: 9) }
        log.secondGoesBy(60, logger)
        #expect(
            lines.take() == [
                "refused again=7 peer=192.0.2.1 reason=token why=wrong signature",
                "refused again=3 peer=192.0.2.1 reason=token why=expired 1 seconds ago",
            ])
        for letter in "abcdefgh" { tell(&log, "192.0.2.1", why: "for \(letter)", at: 61) }
        log.secondGoesBy(120, logger)
        let told = lines.take()
        #expect(told.count == RefusalLog.mostSentences + 1)
        #expect(told.last == "refused again=4 peer=192.0.2.1 reason=token why=for other reasons")
    }

    @Test func aNetworkOfManyAddressesIsOne() {
        var log = RefusalLog()
        for host in 1...100 { tell(&log, "2001:db8:1:2::\(host)") }
        #expect(lines.take().count == 1)
    }

    @Test func manyAddressesTakeNoMoreMemoryThanSome() {
        var log = RefusalLog()
        for number in 0..<5000 { tell(&log, "10.0.\(number / 250).\(number % 250)") }
        let told = lines.take()
        #expect(told.count == RefusalLog.capacity + 1)
        #expect(told.last == "refused peer=one of many reason=token why=w")
    }

    @Test func whatClientsAskForIsCut() {
        var log = RefusalLog()
        log.tell("refused", reason: "request", why: String(repeating: "x", count: 5000), of: nil, at: 0, logger)
        #expect(lines.take().first?.count ?? 0 < 400)
    }
}
