/// A plot as SVG. Colours, line widths and font sizes are the style sheet's.
struct PlotDrawing {
    let plot: Plot

    private static let (width, height) = (560.0, 290.0)
    private static let (left, right, top, bottom) = (66.0, 548.0, 12.0, 262.0)
    /// More points than this do not fit into the width beside each other: they are drawn in stretches.
    static let pointLimit = 600
    static let stretches = 180
    /// How many places can be pointed at; fewer where there are fewer points, so that none of them is empty.
    private static let columnLimit = 120

    var svg: Markup {
        """
        <svg viewBox="0 0 \(Self.width) \(Self.height)" role="img" aria-labelledby="\(plot.name)-title \(plot.name)-desc">
        <title id="\(plot.name)-title">\(plot.title)</title><desc id="\(plot.name)-desc">\(plot.description)</desc>
        \(before)\(verticalTicks)\(horizontalTicks)\(lines)
        <line class="cursor" x1="0" x2="0" y1="\(Self.top)" y2="\(Self.bottom)"/>
        \(places)</svg>
        """
    }

    /// The time before the measurement, in another shade.
    private var before: Markup {
        guard plot.horizontal.scale.range.lowerBound < 0 else { return "" }
        return """
            <rect class="before" x="\(Self.left)" y="\(Self.top)" width="\(x(0) - Self.left)" \
            height="\(Self.bottom - Self.top)"/>
            """
    }

    private var verticalTicks: [Markup] {
        plot.vertical.ticks.map { tick in
            let y = y(tick.value)
            return """
                <line class="grid" x1="\(Self.left)" x2="\(Self.right)" y1="\(y)" y2="\(y)"/>
                <text class="tick" x="\(Self.left - 7)" y="\(y)" dy=".35em" text-anchor="end">\(tick.label)</text>
                """
        }
    }

    private var horizontalTicks: [Markup] {
        var free = -Double.infinity
        return plot.horizontal.ticks.map { tick in
            let x = x(tick.value)
            // Where labels would touch, the later one is left out; a phone's letters count.
            let half = Double(tick.label.count) * 4.5
            let fits = !tick.label.isEmpty && x - half > free
            if fits { free = x + half + 6 }
            // The last label must not run over the edge.
            let anchor: Markup = x + half > Self.width ? "end" : "middle"
            let label: Markup =
                fits
                ? """
                <text class="tick" x="\(min(x, Self.width - 2))" y="\(Self.bottom + 20)" text-anchor="\(anchor)">\(tick.label)</text>
                """ : ""
            return """
                <line class="grid" x1="\(x)" x2="\(x)" y1="\(Self.top)" y2="\(Self.bottom)"/>\(label)
                """
        }
    }

    private var lines: [Markup] {
        plot.series.enumerated().map { index, series in
            let style = "s\(index % StyleSheet.seriesCount)"
            guard series.points.count > Self.pointLimit else {
                return "<path class=\"line \(style)\" d=\"\(path(series.points))\"/>\n"
            }
            let stretches = Stretch.split(series.points, into: Self.stretches, over: plot.horizontal.scale.range)
                .map(Stretch.init)
            let medians = stretches.map { Series.Point(x: $0?.x ?? 0, y: $0?.median) }
            return """
                <path class="band \(style)" d="\(band(stretches))"/>
                <path class="line \(style)" d="\(path(medians))"/>

                """
        }
    }

    private func path(_ points: [Series.Point]) -> Markup {
        var path = PlotPath()
        for point in points {
            if let value = point.y { path.line(to: x(point.x), y(value)) } else { path.lift() }
        }
        return path.markup
    }

    /// The area from the least to the greatest value of each stretch; it has gaps where the line has them.
    private func band(_ stretches: [Stretch?]) -> Markup {
        var path = PlotPath()
        for run in stretches.split(separator: nil) {
            let run = run.compactMap { $0 }
            let above = run.map { (x: x($0.x), y: y($0.greatest)) }
            let below = run.reversed().map { (x: x($0.x), y: y($0.least)) }
            path.area(above + below)
        }
        return path.markup
    }

    /// Invisible stripes: each tells its values when pointed at, with or without the script.
    private var places: [Markup] {
        let count = min(Self.columnLimit, max(1, plot.series.map(\.points.count).max() ?? 1))
        let columns = PlotColumn.columns(of: plot, count: count)
        let width = (Self.right - Self.left) / Double(count)
        return columns.map { column in
            """
            <rect class="place" x="\(Self.left + Double(column.index) * width)" y="\(Self.top)" width="\(width)" \
            height="\(Self.bottom - Self.top)" data-x="\(x(column.middle))"><title>\(column.text)</title></rect>

            """
        }
    }

    private func x(_ value: Double) -> Double {
        Self.left + plot.horizontal.scale.position(of: value) * (Self.right - Self.left)
    }

    private func y(_ value: Double) -> Double {
        Self.bottom - plot.vertical.scale.position(of: value) * (Self.bottom - Self.top)
    }
}

/// The `d` of an SVG path.
struct PlotPath {
    private var source = ""
    private var isDown = false

    var markup: Markup { Markup(trusted: source) }

    mutating func line(to x: Double, _ y: Double) {
        source += (isDown ? "L" : "M") + Decimal.text(x, digits: 1) + " " + Decimal.text(y, digits: 1)
        // A point between two gaps would not be seen without an end to draw to.
        if !isDown { source += "h0" }
        isDown = true
    }

    mutating func lift() { isDown = false }

    /// A shape, given by its corners.
    mutating func area(_ corners: [(x: Double, y: Double)]) {
        for corner in corners { line(to: corner.x, corner.y) }
        if isDown { source += "Z" }
        lift()
    }
}

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
