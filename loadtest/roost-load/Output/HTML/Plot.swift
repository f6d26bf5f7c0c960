/// What is drawn: some series against two axes.
struct Plot {
    /// Unique on its page.
    let name: String
    let title: String
    /// For those who do not see it.
    let description: String
    let horizontal: Axis
    let vertical: Axis
    let series: [Series]
    /// What must be known to read it.
    var note = ""
    /// A row of figures for each series, beside its name: the legend.
    let legend: Legend

    struct Legend {
        let columns: [String]
        let rows: [[String]]
    }

    /// What each line comes to while it is measured: connecting and warming up, before second 0, are left out.
    static func summary(of series: [Series], _ text: (Double) -> String) -> Legend {
        Legend(
            columns: ["least", "median", "most", "last"],
            rows: series.map { series in
                let values = series.points.filter { $0.x >= 0 }.compactMap(\.y)
                let sorted = values.sorted()
                guard let least = sorted.first, let most = sorted.last, let last = values.last else {
                    return ["–", "–", "–", "–"]
                }
                return [least, sorted[(sorted.count - 1) / 2], most, last].map(text)
            })
    }
}

/// A stretch of a plot's horizontal axis with what its series come to there.
struct PlotColumn {
    let index: Int
    let middle: Double
    /// A value for each series, or the two ends of several; a dash where there is none.
    let cells: [String]
    let place: String
    let text: String

    /// The columns of `count` equal stretches; stretches in which there is nothing have none.
    static func columns(of plot: Plot, count: Int) -> [PlotColumn] {
        let range = plot.horizontal.scale.range
        let parts = plot.series.map { Stretch.split($0.points, into: count, over: range) }
        let length = (range.upperBound - range.lowerBound) / Double(count)
        return (0..<count).compactMap { index in
            let values = parts.map { $0[index].compactMap(\.y) }
            let places = parts.flatMap { $0[index].map(\.x) }
            guard values.contains(where: { !$0.isEmpty }), let from = places.min(), let to = places.max() else {
                return nil
            }
            return PlotColumn(
                index: index, middle: range.lowerBound + (Double(index) + 0.5) * length, from: from, to: to,
                values: values,
                plot: plot)
        }
    }

    private init(index: Int, middle: Double, from: Double, to: Double, values: [[Double]], plot: Plot) {
        self.index = index
        self.middle = middle
        place = Self.span(from, to, plot.horizontal.text)
        cells = values.map { values in
            guard let least = values.min(), let most = values.max() else { return "–" }
            return Self.span(least, most, plot.vertical.text)
        }
        text = place + ": " + zip(plot.series, cells).map { "\($0.name) \($1)" }.joined(separator: ", ")
    }

    private static func span(_ from: Double, _ to: Double, _ text: (Double) -> String) -> String {
        let (first, last) = (text(from), text(to))
        return first == last ? first : "\(first)–\(last)"
    }
}

/// One line of a plot.
struct Series {
    struct Point: Equatable {
        var x: Double
        /// Nil where there was nothing to measure: the line has a gap there.
        var y: Double?
    }

    let name: String
    /// In ascending order of x.
    let points: [Point]

    init(_ name: String, _ points: [Point]) {
        self.name = name
        self.points = points.filter { $0.x.isFinite && ($0.y?.isFinite ?? true) }
    }

    var values: [Double] { points.compactMap(\.y) }
}

/// What the points of one part of an axis come to: a long series is drawn by these, so no peak and no dip is lost.
struct Stretch: Equatable {
    let x: Double
    let least: Double
    let median: Double
    let greatest: Double

    /// Nil where there is no value.
    init?(_ points: ArraySlice<Series.Point>) {
        let values = points.compactMap(\.y).sorted()
        guard let least = values.first, let greatest = values.last, let first = points.first, let last = points.last
        else {
            return nil
        }
        x = first.x + (last.x - first.x) / 2
        self.least = least
        self.greatest = greatest
        median = values[(values.count - 1) / 2]
    }

    /// The points in parts of equal length, some of them perhaps empty.
    static func split(
        _ points: [Series.Point], into count: Int, over range: ClosedRange<Double>
    ) -> [ArraySlice<Series.Point>] {
        let length = (range.upperBound - range.lowerBound) / Double(count)
        var parts: [ArraySlice<Series.Point>] = []
        var from = points.startIndex
        for part in 1...count {
            let end = range.lowerBound + length * Double(part)
            let next = part < count ? points[from...].firstIndex { $0.x >= end } : nil
            parts.append(points[from..<(next ?? points.endIndex)])
            from = next ?? points.endIndex
        }
        return parts
    }
}
