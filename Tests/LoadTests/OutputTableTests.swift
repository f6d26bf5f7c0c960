import Testing

@testable import roost_load

@Suite struct OutputTableTests {
    @Test func columnsAreAlignedAndLinesEndWithoutSpaces() {
        var table = TextTable(columns: [.left, .right, .left])
        table.rows = [["a", "1", ""], ["日本", "1,000", "µs"], ["long name"]]
        #expect(table.lines(width: 100) == ["a              1", "日本       1,000  µs", "long name"])
    }

    @Test func aTableThatIsTooWideLosesTextAndNoFigures() {
        var table = TextTable(columns: [.left, .right])
        table.rows = [[String(repeating: "x", count: 60), "123,456"], ["b", "7"]]
        let lines = table.lines(width: 30, indent: 2)
        #expect(lines.allSatisfy { VisibleText.columns($0) <= 30 })
        #expect(lines[0].hasSuffix("…  123,456"))
    }

    @Test func showsFiguresLatenciesChecksAndVerdicts() {
        var record = OutputExample.run()
        record.expectations = [.init(text: "p99<1ms", holds: false, found: "5.00 ms")]
        record.remarks = [String(repeating: "word ", count: 40)]
        let text = ResultTable.text(of: record)
        let lines = text.split(separator: "\n").map(String.init)
        #expect(lines.first == "fanout against ws://127.0.0.1:4000, 60 s measured")
        #expect(lines.contains("Latency          count      p50      p90      p99    p99.9      max"))
        #expect(lines.contains("commit → client  1,000  1.00 ms  2.00 ms  5.00 ms  8.00 ms  9.00 ms"))
        #expect(lines.contains("hub's CPU per delivery       7.12  µs"))
        #expect(lines.contains("  MISSED  p99<1ms  found 5.00 ms"))
        #expect(lines.last == "FAILED: 1 check holds, 1 of 1 expectations is missed.")
        #expect(!text.contains("secret"))
        #expect(lines.allSatisfy { VisibleText.columns($0) <= 100 })
    }

    @Test func nothingBreaksOutOfATerminal() {
        let text = ResultTable.text(of: OutputExample.broken())
        #expect(!text.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" || $0 == "\u{202E}" })
        #expect(
            ResultTable.text(of: RunRecord(scenario: "idle", target: "x", startedAt: 0))
                == "idle against x, 0 s measured")
    }

    @Test(arguments: [("abc", 3), ("日本", 4), ("e\u{301}", 1), ("👩‍👩‍👧", 2), ("µ→━", 3), ("", 0)])
    func countsColumns(_ text: String, _ columns: Int) { #expect(VisibleText.columns(text) == columns) }

    @Test func textIsCutAndWrapped() {
        #expect(VisibleText.cut("abcdef", to: 4) == "abc…")
        #expect(VisibleText.cut("日本語", to: 5) == "日本…")
        #expect(VisibleText.cut("abc", to: 3) == "abc")
        #expect(VisibleText.wrapped("a bc  def ghijklmnop", to: 6) == ["a bc", "def", "ghijkl", "mnop"])
        #expect(VisibleText.wrapped("", to: 6) == [])
    }

    @Test(
        arguments: [
            (0, "0"), (3, "3"), (0.0421, "0.0421"), (7.1234, "7.12"), (139.64, "139.6"), (1_203_344, "1,203,344"),
            (-1500, "-1,500"),
            (.nan, "–"), (1e300, "1e+300"), (20_055.7, "20,056"),
        ] as [(Double, String)])
    func figuresHaveThreeDigits(_ value: Double, _ text: String) { #expect(Amount.text(value) == text) }

    @Test func unitsSuitTheirFigures() {
        #expect(Amount.text(20_000, unit: "/s") == "20,000/s")
        #expect(Amount.text(7.5, unit: "µs") == "7.50 µs")
        #expect([0, 250, 20_000, 1_500_000].map(Amount.short) == ["0", "250", "20 k", "1.5 M"])
        #expect(Amount.memory(kilobytes: 512) == "512 KB")
        #expect(Amount.memory(kilobytes: 40_960) == "40 MB")
        #expect(Amount.memory(kilobytes: 3 * 1024 * 1024) == "3 GB")
        #expect([-3, 0, 5, 75, 3723].map(Amount.clock) == ["-0:03", "0:00", "0:05", "1:15", "1:02:03"])
        #expect(DateAndTime.text(secondsSince1970: 1_763_819_000) == "2025-11-22 13:43:20 UTC")
        #expect(["a-b", "", "it's", "p99<1ms"].map(ShellWord.quoted) == ["a-b", "''", "'it'\\''s'", "'p99<1ms'"])
    }
}
