/// A figure for the operator, as Prometheus names it.
package struct Figure: Sendable {
    package enum Kind: String, Sendable {
        case counter
        case gauge
    }
    package let name: String
    package let kind: Kind
    package let help: String
    package let value: Double

    package init(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
        self.name = name
        self.kind = kind
        self.help = help
        self.value = value
    }

    package init(_ name: String, _ kind: Kind, _ help: String, _ value: Int) {
        self.init(name, kind, help, Double(value))
    }

    /// Prometheus' text format, version 0.0.4.
    package static func exposition(_ figures: [Figure]) -> String {
        var text = ""
        for figure in figures {
            text += "# HELP \(figure.name) \(figure.help)\n# TYPE \(figure.name) \(figure.kind.rawValue)\n"
            let whole = figure.value == figure.value.rounded() && abs(figure.value) < 1e15
            text += "\(figure.name) \(whole ? String(Int(figure.value)) : String(figure.value))\n"
        }
        return text
    }
}
