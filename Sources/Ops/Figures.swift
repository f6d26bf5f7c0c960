package import Hub

/// A figure for the operator, in Prometheus' terms.
package struct Figure: Sendable {
    package enum Kind: String, Sendable {
        case counter, gauge, histogram
    }
    package enum Value: Sendable {
        case number(Double)
        case histogram(Histogram)
    }
    package let name: String
    package let kind: Kind
    package let help: String
    /// The text between the braces, `limit="joins_per_second"`; empty if the name has only one figure. Figures of one
    /// name are adjacent.
    package let label: String
    package let value: Value

    package init(_ name: String, _ kind: Kind, _ help: String, _ value: Double, label: String = "") {
        self.name = name
        self.kind = kind
        self.help = help
        self.value = .number(value)
        self.label = label
    }

    package init(_ name: String, _ kind: Kind, _ help: String, _ value: Int, label: String = "") {
        self.init(name, kind, help, Double(value), label: label)
    }

    package init(_ name: String, _ help: String, _ histogram: Histogram) {
        self.name = name
        kind = .histogram
        self.help = help
        value = .histogram(histogram)
        label = ""
    }

    /// Figures of one name, one for each value of a label, in the values' order.
    package static func labelledFigures(
        _ name: String, _ kind: Kind, _ help: String, _ label: String, _ counts: [String: Int]
    ) -> [Figure] {
        counts.sorted { $0.key < $1.key }.map {
            Figure(name, kind, help, $0.value, label: "\(label)=\"\(escapeLabel($0.key))\"")
        }
    }

    /// Escapes a label's value for Prometheus' text format.
    package static func escapeLabel(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}

/// Writes figures in Prometheus' text format, version 0.0.4.
package enum Exposition {
    package static func text(of figures: [Figure]) -> String {
        var text = ""
        var last = ""
        for figure in figures {
            if figure.name != last {
                text += "# HELP \(figure.name) \(figure.help)\n# TYPE \(figure.name) \(figure.kind.rawValue)\n"
            }
            last = figure.name
            switch figure.value {
            case .number(let value):
                let name = figure.label.isEmpty ? figure.name : "\(figure.name){\(figure.label)}"
                text += "\(name) \(formatNumber(value))\n"
            case .histogram(let histogram): append(histogram, named: figure.name, to: &text)
            }
        }
        return text
    }

    private static func append(_ histogram: Histogram, named name: String, to text: inout String) {
        var seen = 0
        for (bound, count) in zip(histogram.bounds, histogram.counts) {
            seen += count
            text += "\(name)_bucket{le=\"\(formatNumber(Double(bound) / 1e9))\"} \(seen)\n"
        }
        text += "\(name)_bucket{le=\"+Inf\"} \(histogram.count)\n"
        text += "\(name)_sum \(formatNumber(Double(histogram.sum) / 1e9))\n\(name)_count \(histogram.count)\n"
    }

    private static func formatNumber(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value)
    }
}
