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
    private var line = ProgressLine()
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
        lineDue = Clock.now + Self.linePeriod - 500_000_000
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
            if Clock.now >= lineDue { writeLine() }
        }
    }

    /// A sentence that stays, as "Connected 10,000 sockets in 2.1 s.".
    mutating func note(_ sentence: String) {
        let text = VisibleText.of(sentence) + "\n"
        switch mode {
        case .quiet: break
        case .live: draw(above: text)
        case .plain: StandardError.write(text)
        }
    }

    /// Leaves the place to the results.
    mutating func end() {
        switch mode {
        case .quiet: break
        case .live: StandardError.write(area.removal(columns: Terminal.size.columns))
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
        StandardError.write(area.frame(lines, above: above, columns: size.columns, colours: colours))
    }

    private mutating func writeLine() {
        // A line that is late does not make the next one later.
        while lineDue <= Clock.now { lineDue += Self.linePeriod }
        if let text = line.take(scenario: scenario, expectedSeconds: expectedSeconds, errors: errors) {
            StandardError.write(text + "\n")
        }
    }
}
