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
