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
