import Ops
import Testing

@Suite struct RecentLogTests {
    private let log = RecentLog()

    @Test func whatOperatorsShouldSeeIsNoted() {
        log.note(.info, "one")
        log.note(.notice, "two")
        log.note(.error, "three")
        #expect(log.lines(after: 0).map(\.text) == ["two", "three"])
        #expect(log.lines(after: 1).map(\.level) == ["error"])
        #expect(log.lines(after: 2).isEmpty)
    }

    @Test func theLastHundredAreKept() {
        for number in 1...250 { log.note(.error, "\(number)") }
        #expect(log.lines(after: 0).map(\.number) == Array(151...250))
        #expect(log.lines(after: 248).map(\.text) == ["249", "250"])
    }

    @Test func tokensAreHidden() {
        log.note(.warning, "what is eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln doing here")
        #expect(log.lines(after: 0).map(\.text) == ["what is *** doing here"])
    }
}
