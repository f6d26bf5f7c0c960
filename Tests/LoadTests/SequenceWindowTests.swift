import Testing

@testable import roost_load

@Suite struct SequenceWindowTests {
    private func verdicts(_ numbers: [Int], from base: Int = 0) -> [SequenceWindow.Verdict] {
        var window = SequenceWindow()
        window.begin(at: base)
        return numbers.map { window.take($0) }
    }

    private func missing(_ numbers: [Int], from base: Int = 0, before end: Int? = nil) -> Int {
        var window = SequenceWindow()
        window.begin(at: base)
        for number in numbers { _ = window.take(number) }
        return window.missing(before: end)
    }

    @Test func whatComesInOrderIsFine() {
        #expect(verdicts(Array(0..<200)).allSatisfy { $0 == .inOrder })
        #expect(missing(Array(0..<200), before: 200) == 0)
    }

    @Test func gapsAreMissing() {
        #expect(verdicts([0, 1, 4]) == [.inOrder, .inOrder, .inOrder])
        #expect(missing([0, 1, 4]) == 2)
        #expect(missing([0, 1, 4], before: 7) == 4)
        #expect(missing([], before: 3) == 3)
    }

    @Test func whatComesLateIsNotLost() {
        #expect(verdicts([0, 2, 1, 3]) == [.inOrder, .inOrder, .late, .inOrder])
        #expect(missing([0, 2, 1, 3], before: 4) == 0)
    }

    @Test func whatComesTwiceIsRepeated() {
        #expect(verdicts([0, 1, 1, 0, 2]) == [.inOrder, .inOrder, .repeated, .repeated, .inOrder])
        #expect(verdicts([0, 2, 1, 1]) == [.inOrder, .inOrder, .late, .repeated])
        #expect(missing([0, 1, 1, 0, 2], before: 3) == 0)
    }

    @Test func beyondTheWindowItIsLateOnlyIfSomethingIsMissing() {
        #expect(verdicts(Array(0..<100) + [3]).last == .repeated)
        #expect(verdicts(Array(0..<3) + Array(4..<100) + [3]).last == .late)
        #expect(missing(Array(0..<3) + Array(4..<100) + [3], before: 100) == 0)
    }

    @Test func gapsWiderThanTheWindowAreCounted() {
        #expect(missing([0, 1000]) == 999)
        #expect(verdicts([0, 1000, 999, 1000]) == [.inOrder, .inOrder, .late, .repeated])
    }

    @Test func nobodyIsOwedWhatWasBefore() {
        #expect(verdicts([8, 9, 10, 11], from: 10) == [.before, .before, .inOrder, .inOrder])
        #expect(missing([8, 11], from: 10, before: 13) == 2)
        #expect(missing([], from: 10, before: 5) == 0)
        var window = SequenceWindow()
        window.begin(at: 10)
        #expect(window.expected(before: 13) == 3)
        #expect(window.expected(before: 9) == 0)
    }

    @Test func itBeginsAnew() {
        var window = SequenceWindow()
        for number in 0..<5 { _ = window.take(number) }
        window.begin(at: 7)
        #expect(window.missing() == 0)
        #expect(window.take(7) == .inOrder)
        #expect(window.span == 1)
    }
}
