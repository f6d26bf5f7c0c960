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
