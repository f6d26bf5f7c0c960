import Wire

/// Figures for scripts: one object, an entry for each operation in the order measured.
struct FigureJSON {
    let figures: [Figure]

    var text: String {
        "{\"operations\":[\n" + figures.map(entry).joined(separator: ",\n") + "\n]}"
    }

    private func entry(_ figure: Figure) -> String {
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
