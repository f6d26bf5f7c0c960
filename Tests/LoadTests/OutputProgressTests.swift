import Testing

@testable import roost_load

@Suite struct OutputProgressTests {
    private func lines(_ seconds: Double, columns: Int, rows: Int = 24, errors: Int = 0) -> [String] {
        var sample = OutputExample.run().samples[0]
        sample.seconds = seconds
        return ProgressBlock(scenario: "chat", expectedSeconds: 60, sample: sample, errors: errors)
            .lines(columns: columns, rows: rows).map { $0.text(colours: false) }
    }

    @Test func tellsTimeFiguresAndProcesses() {
        let lines = lines(15, columns: 100)
        #expect(
            lines[0] == "chat  0:15 of 1:00, 0:45 left  " + String(repeating: "━", count: 7)
                + String(repeating: "─", count: 23))
        #expect(lines[1].hasPrefix("sockets 100         joined 100          sent 10/s"))
        #expect(lines.last == "hub CPU 50.0 %      memory 40 MB")
        #expect(self.lines(-3, columns: 100)[0] == "chat  connecting and warming up")
        #expect(self.lines(99, columns: 100)[0].contains("0:00 left"))
    }

    @Test(arguments: [1, 10, 20, 33, 47, 80, 200]) func staysInsideTheWindow(_ columns: Int) {
        let lines = lines(15, columns: columns, rows: 6)
        #expect(lines.count <= 5)
        #expect(lines.allSatisfy { VisibleText.columns($0) <= max(10, columns - 1) })
    }

    @Test func frameReplacesTheOneBefore() {
        var area = LiveArea()
        var line = StyledLine()
        line.add("12345678")
        line.add("90", .alarm)
        #expect(area.frame([line, line], columns: 80, colours: false) == "1234567890\n1234567890\n")
        #expect(
            area.frame([line], above: "note\n", columns: 80, colours: true)
                == "\u{1B}[2A\r\u{1B}[Jnote\n12345678\u{1B}[31m90\u{1B}[0m\n")
        // The window has become narrower: the line has two rows now.
        #expect(area.removal(columns: 9) == "\u{1B}[2A\r\u{1B}[J")
        #expect(area.removal(columns: 9) == "")
    }

    @Test func aLineSumsUpItsSeconds() {
        var line = ProgressSummary()
        #expect(line.take(scenario: "chat", expectedSeconds: 60, errors: 0) == nil)
        for sample in OutputExample.run().samples { line.add(sample) }
        #expect(
            line.take(scenario: "chat", expectedSeconds: 60, errors: 2)
                == "chat 0:02 of 1:00: 100 sockets, 100 joined, 10 sent/s, 1,001 received/s, p50 1.00 ms, "
                + "p99 at most 5.00 ms, 2 errors, hub CPU 50.0 % memory 40 MB")
        #expect(line.take(scenario: "chat", expectedSeconds: 60, errors: 2) == nil)
    }
}
