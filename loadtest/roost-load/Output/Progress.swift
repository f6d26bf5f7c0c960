/// What standard error tells while a run goes on.
struct Progress {
    enum Mode {
        /// Some lines that are written anew in place.
        case live
        /// A plain line every ten seconds.
        case plain
        case quiet

        static func suited(quiet: Bool) -> Mode { quiet ? .quiet : Terminal.isThere ? .live : .plain }
    }

    private let scenario: String
    private let expectedSeconds: Double?
    private let mode: Mode
    private let colours: Bool
    private var errors = 0
    private var shown: RunRecord.Sample?
    private var area = LiveArea()
    private var line = ProgressSummary()
    private var lineDue: UInt64

    /// - Parameter expectedSeconds: How long it will be measured; nil when nobody knows.
    static func begin(scenario: String, expectedSeconds: Double?, mode: Mode) -> Progress {
        Progress(scenario, expectedSeconds, mode)
    }

    private init(_ scenario: String, _ expectedSeconds: Double?, _ mode: Mode) {
        self.scenario = scenario
        self.expectedSeconds = expectedSeconds
        self.mode = mode
        colours = Terminal.hasColours
        // Half a second early, so that the tenth sample is not missed by a hair.
        lineDue = MonotonicClock.now + Self.linePeriod - 500_000_000
    }

    private static let linePeriod: UInt64 = 10_000_000_000

    mutating func show(_ sample: RunRecord.Sample) {
        errors += sample.errors
        shown = sample
        switch mode {
        case .quiet: break
        case .live: draw()
        case .plain:
            line.add(sample)
            if MonotonicClock.now >= lineDue { writeLine() }
        }
    }

    /// A sentence that stays, as "Connected 10,000 sockets in 2.1 s.".
    mutating func note(_ sentence: String) {
        let text = VisibleText.of(sentence) + "\n"
        switch mode {
        case .quiet: break
        case .live: draw(above: text)
        case .plain: ErrorOutput.write(text)
        }
    }

    /// Leaves the place to the results.
    mutating func end() {
        switch mode {
        case .quiet: break
        case .live: ErrorOutput.write(area.removal(columns: Terminal.size.columns))
        case .plain: writeLine()
        }
        shown = nil
    }

    private mutating func draw(above: String = "") {
        let size = Terminal.size
        var lines: [StyledLine] = []
        if let shown {
            lines = ProgressBlock(scenario: scenario, expectedSeconds: expectedSeconds, sample: shown, errors: errors)
                .lines(columns: size.columns, rows: size.rows)
        }
        ErrorOutput.write(area.frame(lines, above: above, columns: size.columns, colours: colours))
    }

    private mutating func writeLine() {
        // A line that is late does not make the next one later.
        while lineDue <= MonotonicClock.now { lineDue += Self.linePeriod }
        if let text = line.take(scenario: scenario, expectedSeconds: expectedSeconds, errors: errors) {
            ErrorOutput.write(text + "\n")
        }
    }
}

/// The live lines of a run: what is going on now, in as many columns as there are.
struct ProgressBlock {
    let scenario: String
    let expectedSeconds: Double?
    let sample: RunRecord.Sample
    let errors: Int

    func lines(columns: Int, rows: Int) -> [StyledLine] {
        // The last column stays free: some terminals break the line there.
        let width = max(10, columns - 1)
        var lines = [clock(width)] + flow(figures, width)
        lines += sample.processes.flatMap { flow(cells(of: $0), width) }
        // What scrolls out of sight cannot be written anew.
        return lines.prefix(max(1, rows - 1)).map { $0.cut(to: width) }
    }

    private func clock(_ width: Int) -> StyledLine {
        var line = StyledLine()
        line.add(VisibleText.of(scenario), .strong)
        guard sample.seconds >= 0 else {
            line.add("  connecting and warming up")
            return line
        }
        line.add("  " + Amount.clock(seconds: sample.seconds))
        guard let expectedSeconds, expectedSeconds > 0 else { return line }
        let left = max(0, expectedSeconds - sample.seconds)
        line.add(" of \(Amount.clock(seconds: expectedSeconds)), \(Amount.clock(seconds: left)) left  ")
        let length = min(30, width - line.columns)
        guard length >= 8 else { return line }
        let done = Int(min(1, sample.seconds / expectedSeconds) * Double(length))
        line.add(String(repeating: "━", count: done))
        line.add(String(repeating: "─", count: length - done), .faint)
        return line
    }

    private var figures: [StyledLine] {
        var cells = [
            cell("sockets", Amount.count(sample.sockets)), cell("joined", Amount.count(sample.joined)),
            cell("sent", Amount.count(sample.sent) + "/s"), cell("received", Amount.count(sample.received) + "/s"),
            cell("p50", sample.p50.map(Decimal.duration) ?? "–"), cell("p99", sample.p99.map(Decimal.duration) ?? "–"),
        ]
        cells.append(cell("errors", Amount.count(errors), errors > 0 ? .alarm : .plain))
        return cells
    }

    private func cells(of process: RunRecord.Sample.Process) -> [StyledLine] {
        [
            cell(VisibleText.of(process.name), "CPU " + Amount.percent(process.cpuPercent)),
            cell("memory", Amount.memory(kilobytes: process.memoryKB)),
        ]
    }

    private func cell(_ name: String, _ value: String, _ style: StyledLine.Style = .plain) -> StyledLine {
        var cell = StyledLine()
        cell.add(name + " ", .faint)
        cell.add(value, style)
        return cell
    }

    /// As many cells on a line as it holds; a cell keeps its place while its figure grows a little.
    private func flow(_ cells: [StyledLine], _ width: Int) -> [StyledLine] {
        let slot = 20
        var lines: [StyledLine] = []
        var line = StyledLine()
        for cell in cells {
            if line.columns > 0 {
                let next = (line.columns / slot + 1) * slot
                if next + cell.columns > width {
                    lines.append(line)
                    line = StyledLine()
                } else {
                    line.add(String(repeating: " ", count: next - line.columns))
                }
            }
            line.add(cell)
        }
        return line.columns > 0 ? lines + [line] : lines
    }
}

/// Progress for a log: one line for the samples of several seconds.
struct ProgressSummary {
    private var samples = 0
    private var sent = 0
    private var received = 0
    private var worst: UInt64?
    private var last: RunRecord.Sample?

    mutating func add(_ sample: RunRecord.Sample) {
        samples += 1
        sent += sample.sent
        received += sample.received
        if let p99 = sample.p99 { worst = max(worst ?? 0, p99) }
        last = sample
    }

    /// The line for what was added since it was taken last; nil where that is nothing.
    mutating func take(scenario: String, expectedSeconds: Double?, errors: Int) -> String? {
        guard let last else { return nil }
        var time = "connecting and warming up"
        if last.seconds >= 0 {
            time = Amount.clock(seconds: last.seconds)
            if let expectedSeconds { time += " of \(Amount.clock(seconds: expectedSeconds))" }
        }
        var parts = [
            "\(Amount.count(last.sockets)) sockets", "\(Amount.count(last.joined)) joined",
            "\(Amount.count(sent / samples)) sent/s", "\(Amount.count(received / samples)) received/s",
        ]
        if let p50 = last.p50, let worst {
            parts.append(
                "p50 \(Decimal.duration(nanoseconds: p50)), p99 at most \(Decimal.duration(nanoseconds: worst))")
        }
        parts.append("\(Amount.count(errors)) errors")
        for process in last.processes {
            parts.append(
                "\(process.name) CPU \(Amount.percent(process.cpuPercent)) "
                    + "memory \(Amount.memory(kilobytes: process.memoryKB))")
        }
        self = ProgressSummary()
        return VisibleText.of("\(scenario) \(time): \(parts.joined(separator: ", "))")
    }
}

/// Lines at the end of a terminal that are written anew in place. Between two frames the cursor stands at the start of the line
/// below them and no mode is changed, so a program that dies leaves a whole terminal.
struct LiveArea {
    /// The columns of each line that stands there.
    private var drawn: [Int] = []

    /// What the terminal must be sent to show `lines` instead, with `above` left standing for good.
    mutating func frame(_ lines: [StyledLine], above: String = "", columns: Int, colours: Bool) -> String {
        var text = erasure(columns: columns) + above
        for line in lines { text += line.text(colours: colours) + "\n" }
        drawn = lines.map(\.columns)
        return text
    }

    /// What removes it.
    mutating func removal(columns: Int) -> String {
        defer { drawn = [] }
        return erasure(columns: columns)
    }

    private func erasure(columns: Int) -> String {
        guard !drawn.isEmpty else { return "" }
        // A window that has become narrower has broken lines in two.
        let rows = drawn.reduce(0) { $0 + max(1, ($1 + columns - 1) / max(1, columns)) }
        return "\u{1B}[\(rows)A\r\u{1B}[J"
    }
}
