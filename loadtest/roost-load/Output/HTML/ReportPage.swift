/// The page from top to bottom.
struct ReportPage {
    private let record: RunRecord

    init(_ record: RunRecord) { self.record = record }

    var markup: Markup {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
        script-src 'unsafe-inline'">
        <title>\(record.scenario) – roost-load</title>
        <style>
        \(Markup(trusted: StyleSheet.text))</style>
        </head>
        <body>
        \(head)<main>
        \(highlights)\(remarks)\(expectations)\(plots)\(ReportTables(record).markup)</main>
        <script>
        \(Markup(trusted: HoverScript.text))</script>
        </body>
        </html>

        """
    }

    private var head: Markup {
        """
        <header>
        <p class="tool">roost-load</p>
        <h1>\(record.scenario)</h1>
        <p>against <b>\(record.target)</b>, \(Amount.text(record.measuredSeconds)) s measured, \
        started \(DateAndTime.text(secondsSince1970: record.startedAt))</p>
        \(verdict)
        </header>

        """
    }

    private var verdict: Markup {
        let outcome = Outcome(of: record)
        return switch outcome.verdict {
        case .passed: "<p class=\"verdict passed\"><b>✓ Passed.</b> \(outcome.sentence)</p>"
        case .failed: "<p class=\"verdict missed\"><b>✗ Failed.</b> \(outcome.sentence)</p>"
        case .open: "<p class=\"verdict\">\(outcome.sentence)</p>"
        }
    }

    /// What most readers came for.
    private var highlights: Markup {
        var tiles: [(name: String, value: String)] = []
        if let latency = record.latencies.first {
            for percentile in [LatencyPercentile.p50, .p99, .max] {
                tiles.append(
                    ("\(latency.title), \(percentile.rawValue)", latency[percentile].map(Decimal.duration) ?? "–"))
            }
        }
        let figures = record.figures.filter { !$0.title.isEmpty && !$0.isCheck }
        for figure in figures.prefix(6 - tiles.count) {
            tiles.append((figure.title, Amount.text(figure.value, unit: figure.unit)))
        }
        guard !tiles.isEmpty else { return "" }
        let items = tiles.map { "<div><dt>\($0.name)</dt><dd>\($0.value)</dd></div>\n" as Markup }
        return "<dl class=\"highlights\">\(items)</dl>\n"
    }

    private var remarks: Markup {
        guard !record.remarks.isEmpty else { return "" }
        let items = record.remarks.map { "<li>\($0)</li>\n" as Markup }
        return "<section><h2>Remarks</h2><ul>\n\(items)</ul></section>\n"
    }

    private var expectations: Markup {
        guard !record.expectations.isEmpty else { return "" }
        let rows = record.expectations.map { verdict in
            let mark: Markup =
                verdict.holds ? "<td class=\"passed\">✓ holds</td>" : "<td class=\"missed\">✗ missed</td>"
            return "<tr><th scope=\"row\"><code>\(verdict.text)</code></th><td>\(verdict.found)</td>\(mark)</tr>\n"
                as Markup
        }
        return """
            <section><h2>Expectations</h2><div class="wide"><table>
            <thead><tr><th scope="col">expected</th><th scope="col">found</th><th scope="col">verdict</th></tr></thead>
            <tbody>
            \(rows)</tbody></table></div></section>

            """
    }

    private var plots: Markup {
        let plots = [PercentilePlot.plot(of: record.latencies)].compactMap { $0 } + TimePlots(record).plots
        guard !plots.isEmpty else { return "<p class=\"note\">There is nothing to plot.</p>\n" }
        return "<section class=\"plots\">\n\(plots.map { PlotFigure(plot: $0).markup })</section>\n"
    }
}

/// A run as one page that can be attached, printed and read without a network.
enum HTMLReport {
    static func write(_ record: RunRecord, to path: String) throws {
        try ReportFile(path: path).write(ReportPage(record).markup.source)
    }
}

/// The part of the page that is made of tables: what was measured, with what, on what.
struct ReportTables {
    private let record: RunRecord

    init(_ record: RunRecord) { self.record = record }

    var markup: Markup { "<div class=\"tables\">\n\(figures)\(checks)\(facts)</div>\n\(command)" }

    private var shown: [RunRecord.Figure] { record.figures.filter { !$0.title.isEmpty } }

    private var figures: Markup {
        let rows = shown.filter { !$0.isCheck }.map { figure in
            """
            <tr><th scope="row">\(figure.title)</th><td class="number">\(Amount.text(figure.value, unit: figure.unit))</td></tr>

            """ as Markup
        }
        return table("Figures", rows)
    }

    private var checks: Markup {
        let rows = shown.filter(\.isCheck).map { figure in
            let mark: Markup =
                figure.value == 0 ? "<td class=\"passed\">✓</td>" : "<td class=\"missed\">✗ not zero</td>"
            return """
                <tr><th scope="row">\(figure.title)</th><td class="number">\(Amount.text(figure.value))</td>\(mark)</tr>

                """ as Markup
        }
        return table("Checks", rows)
    }

    private var facts: [Markup] {
        [("Parameters", record.parameters), ("Conditions", record.conditions)].map { title, facts in
            table(title, facts.map { "<tr><th scope=\"row\">\($0.name)</th><td>\($0.value)</td></tr>\n" })
        }
    }

    private func table(_ title: String, _ rows: [Markup]) -> Markup {
        guard !rows.isEmpty else { return "" }
        return "<section><h2>\(title)</h2><div class=\"wide\"><table><tbody>\n\(rows)</tbody></table></div></section>\n"
    }

    private var command: Markup {
        guard !record.command.isEmpty else { return "" }
        let words = record.command.map(ShellWord.quoted).joined(separator: " ")
        return "<section><h2>Command</h2><pre><code>\(words)</code></pre></section>\n"
    }
}

/// A piece of HTML or SVG. Text that is put into it is escaped: only literals and other pieces are taken as they are.
struct Markup: ExpressibleByStringInterpolation, ExpressibleByStringLiteral {
    let source: String

    init(stringLiteral literal: String) { source = literal }

    init(stringInterpolation pieces: Pieces) { source = pieces.source }

    /// Trusts `source`: what was made of numbers, or stands in this program.
    init(trusted source: String) { self.source = source }

    static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in VisibleText.of(text).unicodeScalars {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }

    struct Pieces: StringInterpolationProtocol {
        fileprivate var source = ""

        init(literalCapacity: Int, interpolationCount: Int) { source.reserveCapacity(literalCapacity) }

        mutating func appendLiteral(_ literal: String) { source += literal }
        mutating func appendInterpolation(_ text: String) { source += Markup.escaped(text) }
        mutating func appendInterpolation(_ number: Int) { source += String(number) }
        /// A coordinate: a tenth of a unit is finer than any screen.
        mutating func appendInterpolation(_ number: Double) { source += Decimal.text(number, digits: 1) }
        mutating func appendInterpolation(_ piece: Markup) { source += piece.source }
        mutating func appendInterpolation(_ pieces: [Markup]) { for piece in pieces { source += piece.source } }
    }
}
