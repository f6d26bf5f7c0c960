/// A figure for the operator, as Prometheus names it.
package struct Figure: Sendable {
    package enum Kind: String, Sendable {
        case counter
        case gauge
    }
    package let name: String
    package let kind: Kind
    package let help: String
    /// `limit="joins_per_second"`, between the braces; empty for a figure that is one of a kind. Figures of one name
    /// follow each other.
    package let label: String
    package let value: Double

    package init(_ name: String, _ kind: Kind, _ help: String, _ value: Double, label: String = "") {
        self.name = name
        self.kind = kind
        self.help = help
        self.value = value
        self.label = label
    }

    package init(_ name: String, _ kind: Kind, _ help: String, _ value: Int, label: String = "") {
        self.init(name, kind, help, Double(value), label: label)
    }

    /// Prometheus' text format, version 0.0.4.
    package static func exposition(_ figures: [Figure]) -> String {
        var text = ""
        var last = ""
        for figure in figures {
            if figure.name != last {
                text += "# HELP \(figure.name) \(figure.help)\n# TYPE \(figure.name) \(figure.kind.rawValue)\n"
            }
            last = figure.name
            let name = figure.label.isEmpty ? figure.name : "\(figure.name){\(figure.label)}"
            let whole = figure.value == figure.value.rounded() && abs(figure.value) < 1e15
            text += "\(name) \(whole ? String(Int(figure.value)) : String(figure.value))\n"
        }
        return text
    }
}
