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
