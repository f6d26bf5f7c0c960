/// A run for scripts: `line` has what one compares, `record` everything.
enum JSONReport {
    /// One flat object on one line; its last members are lists. Latencies are in µs.
    static func line(of record: RunRecord) -> String {
        var (writer, used) = (JSONWriter(), Set<String>())
        writer.object { writer in
            func add(_ name: String, _ value: (inout JSONWriter) -> Void) {
                // Readers differ in which of two equal keys they take.
                guard used.insert(name).inserted else { return }
                writer.key(name)
                value(&writer)
            }
            add("scenario") { $0.value(record.scenario) }
            add("target") { $0.value(record.target) }
            add("started_at") { $0.value(record.startedAt) }
            add("measured_seconds") { $0.value(record.measuredSeconds) }
            add("passed") { $0.value(Outcome(of: record).verdict != .failed) }
            // Lists keep their names whatever a figure is called.
            used.formUnion(["expectations", "remarks"])
            for figure in record.figures { add(figure.name) { $0.value(figure.value) } }
            for latency in record.latencies {
                add("\(latency.name)_count") { $0.value(latency.count) }
                for percentile in LatencyPercentile.allCases {
                    add("\(latency.name)_\(percentile.rawValue)_us") { writer in
                        guard let found = latency[percentile] else { return writer.null() }
                        writer.value(Double(found) / 1000)
                    }
                }
            }
            writer.expectations(record.expectations)
            writer.remarks(record.remarks)
        }
        return writer.text
    }

    /// The whole record with its samples, on one line.
    static func document(of record: RunRecord) -> String {
        var writer = JSONWriter()
        writer.record(record)
        return writer.text
    }

    static func write(_ record: RunRecord, to path: String) throws {
        try ReportFile(path: path).write(document(of: record) + "\n")
    }
}
