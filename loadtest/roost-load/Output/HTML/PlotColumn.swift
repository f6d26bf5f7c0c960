/// A stretch of a plot's horizontal axis with what its series come to there.
struct PlotColumn {
    let index: Int
    let middle: Double
    /// A value for each series, or the two ends of several; a dash where there is none.
    let cells: [String]
    let place: String
    let text: String

    /// Those of `count` equal stretches in which there is something.
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
