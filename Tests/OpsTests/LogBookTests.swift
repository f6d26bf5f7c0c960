import Ops
import Testing

@Suite struct LogBookTests {
    private let book = LogBook()

    @Test func whatOperatorsShouldSeeIsNoted() {
        book.note(.info, "one")
        book.note(.notice, "two")
        book.note(.error, "three")
        #expect(book.lines(after: 0).map(\.text) == ["two", "three"])
        #expect(book.lines(after: 1).map(\.level) == ["error"])
        #expect(book.lines(after: 2).isEmpty)
    }

    @Test func theLastHundredAreKept() {
        for number in 1...250 { book.note(.error, "\(number)") }
        #expect(book.lines(after: 0).map(\.number) == Array(151...250))
        #expect(book.lines(after: 248).map(\.text) == ["249", "250"])
    }

    @Test func tokensAreHidden() {
        book.note(.warning, "what is eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln doing here")
        #expect(book.lines(after: 0).map(\.text) == ["what is *** doing here"])
    }
}
