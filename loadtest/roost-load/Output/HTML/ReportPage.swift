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
        started \(Moment.text(secondsSince1970: record.startedAt))</p>
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
