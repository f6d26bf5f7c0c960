/// A plot on a page, with its legend and its values as a table.
struct PlotFigure {
    let plot: Plot
    private static let tableRows = 24

    var markup: Markup {
        let note: Markup = plot.note.isEmpty ? "" : "<p class=\"note\">\(plot.note)</p>"
        return """
            <figure id="\(plot.name)">
            <figcaption>\(plot.title)</figcaption>
            <p class="axis">\(plot.vertical.title)</p>
            \(PlotDrawing(plot: plot).svg)
            <output aria-live="off"></output>
            <p class="axis below">\(plot.horizontal.title)</p>
            \(legend)\(note)\(values)
            </figure>

            """
    }

    private var legend: Markup {
        let heads = plot.legend.columns.map { "<th scope=\"col\">\($0)</th>" as Markup }
        let rows = plot.series.enumerated().map { index, series in
            let cells = plot.legend.rows[index].map { "<td>\($0)</td>" as Markup }
            let style = index % StyleSheet.seriesCount
            return """
                <tr><th scope="row"><svg class="swatch" viewBox="0 0 28 8" aria-hidden="true"><path class="line s\(style)" \
                d="M1 4H27"/></svg>\(series.name)</th>\(cells)</tr>

                """ as Markup
        }
        return """
            <div class="wide"><table class="legend"><thead><tr><td></td>\(heads)</tr></thead><tbody>
            \(rows)</tbody></table></div>

            """
    }

    private var values: Markup {
        let columns = PlotColumn.columns(of: plot, count: Self.tableRows)
        guard !columns.isEmpty else { return "" }
        let heads = plot.series.map { "<th scope=\"col\">\($0.name)</th>" as Markup }
        let rows = columns.map { column in
            let cells = column.cells.map { "<td>\($0)</td>" as Markup }
            return "<tr><th scope=\"row\">\(column.place)</th>\(cells)</tr>\n" as Markup
        }
        return """
            <details><summary>Values</summary><div class="wide"><table class="values">
            <thead><tr><th scope="col">\(plot.horizontal.title)</th>\(heads)</tr></thead><tbody>
            \(rows)</tbody></table></div></details>
            """
    }
}
