import ArgumentParser

/// What is shown of a run, and what it is held to.
struct ReportOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A bound, as p99<10ms, typing_p99<20ms, lost<1 or delivered>1000; may be repeated.", valueName: "bound"))
    var expect: [Expectation] = []

    @Flag(help: "Print one line of JSON instead of a table.")
    var json = false

    @Option(help: ArgumentHelp("Write a report with plots, one HTML file.", valueName: "file"))
    var html: String?

    @Option(help: ArgumentHelp("Write all that was found as JSON, second by second.", valueName: "file"))
    var record: String?

    @Flag(help: "No progress on standard error.")
    var quiet = false

    /// Before a run.
    func checkFiles() throws {
        for path in [html, record] { if let path { try ReportFile(path: path).checkIsWritable() } }
    }

    /// Shows it; ends with 1 where something was missed.
    func show(_ record: RunRecord) throws {
        print(json ? JSONReport.line(of: record) : ResultTable.text(of: record))
        if let html { try HTMLReport.write(record, to: html) }
        if let path = self.record { try JSONReport.write(record, to: path) }
        let missed = record.expectations.filter { !$0.holds }
        guard missed.isEmpty else {
            for verdict in missed {
                StandardError.write("Failed: expected \(verdict.text), but found \(verdict.found).\n")
            }
            throw ExitCode(1)
        }
    }
}
