import Foundation
import FoundationXML
import Testing

@testable import roost_load

@Suite struct OutputHTMLTests {
    @Test func textIsEscapedAndPiecesAreNot() {
        let text = "<b>\"'&\u{1B}\u{0}\u{202E}é"
        let piece: Markup = "<i>\(text)</i>\(1)"
        #expect(piece.source == "<i>&lt;b&gt;&quot;&#39;&amp;\u{FFFD}\u{FFFD}\u{FFFD}é</i>1")
        #expect(
            ("<p>\(piece)\([piece, piece])</p>" as Markup).source
                == "<p>\(String(repeating: piece.source, count: 3))</p>")
        #expect(("\(0.25) \(-3.0)" as Markup).source == "0.3 -3.0")
    }

    // By their names: a test's arguments are printed in full.
    private static let examples = [
        "usual": OutputExample.run(), "broken": OutputExample.broken(), "long": OutputExample.run(samples: 2000),
        "without samples": OutputExample.run(samples: 0), "empty": RunRecord(scenario: "", target: "", startedAt: 0),
    ]

    @Test(arguments: examples.keys.sorted())
    func isWellFormedAndNeedsNoNetwork(_ name: String) throws {
        let record = try #require(Self.examples[name])
        let page = ReportPage(record).markup.source
        #expect(page.components(separatedBy: "<script").count == 2)
        #expect(!page.contains("\u{1B}") && !page.contains("\u{0}") && !page.contains("nan"))
        for word in ["http:", "https:", "src=", "href=", "url(", "@import"] { #expect(!page.contains(word)) }
        // But for its void elements the page is XML.
        var body = try #require(page.components(separatedBy: "<body>").last?.components(separatedBy: "<script>").first)
        body = "<body>" + body + "</body>"
        let parser = XMLParser(data: Data(body.utf8))
        #expect(parser.parse(), "\(parser.parserError.debugDescription) in line \(parser.lineNumber)")
    }

    @Test func tellsTheVerdictAndEveryPlot() {
        var record = OutputExample.run()
        #expect(ReportPage(record).markup.source.contains("✓ Passed."))
        for name in ["percentiles", "latency", "received", "sent", "cpu", "memory", "sockets"] {
            #expect(ReportPage(record).markup.source.contains("<figure id=\"\(name)\">"))
        }
        record.expectations = [.init(text: "p99<1ms", holds: false, found: "5 ms")]
        #expect(ReportPage(record).markup.source.contains("✗ Failed."))
    }

    @Test func overTimeLatenciesAreNanoseconds() throws {
        let plots = TimePlots(OutputExample.run()).plots
        let latency = try #require(plots.first { $0.name == "latency" })
        #expect(latency.series.map(\.values) == [[1e6, 1e6, 1e6], [5e6, 5e6, 5e6], [9e6, 9e6, 9e6]])
        #expect(latency.legend.rows[1] == ["5.00 ms", "5.00 ms", "5.00 ms", "5.00 ms"])
    }

    @Test func figuresLeaveOutWhatWasBeforeTheMeasurement() throws {
        var record = OutputExample.run()
        for index in record.samples.indices { record.samples[index].seconds -= 1 }
        record.samples[0].received = 9_999_999
        let received = try #require(TimePlots(record).plots.first { $0.name == "received" })
        #expect(received.legend.rows == [["1,001/s", "1,001/s", "1,002/s", "1,002/s"]])
        #expect(received.series[0].values.max() == 9_999_999)
        #expect(received.note.contains("before the measurement"))
    }

    @Test func whatNeverHappenedHasNoPlot() {
        #expect(!TimePlots(OutputExample.run()).plots.contains { $0.name == "errors" })
    }

    @Test func aFileThatCannotBeWrittenSaysWhatToDo() {
        for path in ["/nowhere/report.html", "/"] {
            let file = ReportFile(path: path)
            for attempt in [file.checkIsWritable, { try file.write("x") }] {
                #expect {
                    try attempt()
                } throws: { error in
                    (error as? LoadFailure)?.sentence.hasPrefix("\(path) cannot be written (") == true
                }
            }
        }
    }

    @Test func aFileIsWrittenWhole() throws {
        let path = NSTemporaryDirectory() + "/roost-load-\(UUID().uuidString).html"
        defer { unlink(path) }
        try ReportFile(path: path).checkIsWritable()
        #expect(!FileManager.default.fileExists(atPath: path))
        try ReportFile(path: path).write(String(repeating: "longer", count: 1000))
        try HTMLReport.write(OutputExample.run(), to: path)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == ReportPage(OutputExample.run()).markup.source)
    }
}
