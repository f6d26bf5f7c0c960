package import Hub

/// A figure for the operator, as Prometheus names it.
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
    /// `limit="joins_per_second"`, between the braces; empty for a figure that is one of a kind. Figures of one name
    /// follow each other.
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

    /// Of the same name: one for each value of a label, in the values' order.
    package static func each(
        _ name: String, _ kind: Kind, _ help: String, _ label: String, _ counts: [String: Int]
    ) -> [Figure] {
        counts.sorted { $0.key < $1.key }.map {
            Figure(name, kind, help, $0.value, label: "\(label)=\"\(escaped($0.key))\"")
        }
    }

    /// A label's value (Prometheus' text format).
    package static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
