import Ops
import Testing

@Suite struct RecentLogTests {
    private let log = RecentLog()

    @Test func whatIsLoggedIsNoted() {
        log.addLine(.info, "one")
        log.addLine(.notice, "two")
        log.addLine(.debug, "three")
        #expect(log.lines(after: 0).map(\.text) == ["one", "two", "three"])
        #expect(log.lines(after: 2).map(\.level) == ["debug"])
        #expect(log.lines(after: 3).isEmpty)
    }

    @Test func aFloodOfLesserLinesPushesOutNoWarning() {
        log.addLine(.warning, "what matters")
        for number in 1...1000 { log.addLine(.debug, "\(number)") }
        let kept = log.lines(after: 0)
        #expect(kept.first?.text == "what matters")
        #expect(kept.dropFirst().map(\.number) == Array(802...1001))
    }

    @Test func theLastHundredWarningsAreKept() {
        for number in 1...250 { log.addLine(.error, "\(number)") }
        #expect(log.lines(after: 0).map(\.number) == Array(151...250))
        #expect(log.lines(after: 248).map(\.text) == ["249", "250"])
    }

    @Test func tokensAreHidden() {
        log.addLine(.warning, "what is eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln doing here")
        #expect(log.lines(after: 0).map(\.text) == ["what is *** doing here"])
    }
}
