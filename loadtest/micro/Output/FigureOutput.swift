import Glibc
import Wire

/// Figures for people, as a Markdown table.
struct FigureTable {
    let figures: [OperationCost]

    private static let head = [
        "operation", "CPU ns (median)", "least", "instructions", "allocations", "bytes", "million pairs/s",
    ]

    var text: String {
        let rows = [Self.head] + figures.map(cells)
        let widths = Self.head.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        var lines = rows.map { row in
            let cells = zip(row, widths).enumerated().map { column, cell in
                let (text, width) = cell
                let space = String(repeating: " ", count: width - text.count)
                return column == 0 ? text + space : space + text
            }
            return "| " + cells.joined(separator: " | ") + " |"
        }
        let rule = widths.enumerated().map { column, width in
            String(repeating: "-", count: width + (column == 0 ? 2 : 1)) + (column == 0 ? "" : ":")
        }
        lines.insert("|" + rule.joined(separator: "|") + "|", at: 1)
        return lines.joined(separator: "\n")
    }

    private func cells(_ figure: OperationCost) -> [String] {
        [
            figure.name,
            figure.time.map { FixedText.of($0.median, $0.median < 100 ? 1 : 0) } ?? "",
            figure.time.map { FixedText.of($0.least, $0.least < 100 ? 1 : 0) } ?? "",
            figure.time?.instructions.map { FixedText.of($0, 0) } ?? "",
            FixedText.of(figure.allocations, 2), FixedText.of(figure.bytes, 0),
            figure.time?.pairsPerSecond.map { FixedText.of($0 / 1e6, 1) } ?? "",
        ]
    }
}

/// Figures for scripts: one object, an entry for each operation in the order measured.
struct FigureJSON {
    let figures: [OperationCost]

    var text: String {
        "{\"operations\":[\n" + figures.map(entry).joined(separator: ",\n") + "\n]}"
    }

    private func entry(_ figure: OperationCost) -> String {
        var members = ["\"name\":" + String(decoding: JSONString.encode(figure.name), as: UTF8.self)]
        func add(_ key: String, _ value: Double?, _ decimals: Int) {
            if let value { members.append("\"\(key)\":" + FixedText.of(value, decimals)) }
        }
        add("cpu_ns_median", figure.time?.median, 1)
        add("cpu_ns_least", figure.time?.least, 1)
        add("instructions", figure.time?.instructions, 0)
        add("allocations", figure.allocations, 2)
        add("bytes", figure.bytes, 2)
        add("blocks_kept", figure.kept, 2)
        add("pairs_per_second", figure.time?.pairsPerSecond, 0)
        return "{" + members.joined(separator: ",") + "}"
    }
}

/// Numbers with so many decimals, without Foundation.
enum FixedText {
    static func of(_ value: Double, _ decimals: Int) -> String {
        var text = [CChar](repeating: 0, count: 64)
        let count = withVaList([Int32(decimals), value]) { vsnprintf(&text, text.count, "%.*f", $0) }
        return String(decoding: text.prefix(Int(count)).map(UInt8.init), as: UTF8.self)
    }
}
