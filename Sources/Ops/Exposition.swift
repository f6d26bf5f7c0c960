import Hub

/// Prometheus' text format, version 0.0.4.
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
                text += "\(name) \(number(value))\n"
            case .histogram(let histogram): append(histogram, named: figure.name, to: &text)
            }
        }
        return text
    }

    private static func append(_ histogram: Histogram, named name: String, to text: inout String) {
        var seen = 0
        for (bound, count) in zip(histogram.bounds, histogram.counts) {
            seen += count
            text += "\(name)_bucket{le=\"\(number(Double(bound) / 1e9))\"} \(seen)\n"
        }
        text += "\(name)_bucket{le=\"+Inf\"} \(histogram.count)\n"
        text += "\(name)_sum \(number(Double(histogram.sum) / 1e9))\n\(name)_count \(histogram.count)\n"
    }

    private static func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value)
    }
}
