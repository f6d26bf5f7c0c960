import Wire

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

extension JSONWriter {
    mutating func record(_ record: RunRecord) {
        object { writer in
            writer.member("scenario", record.scenario)
            writer.member("target", record.target)
            writer.array("command", record.command) { $0.value($1) }
            writer.member("started_at", record.startedAt)
            writer.member("measured_seconds", record.measuredSeconds)
            writer.array("conditions", record.conditions) { $0.fact($1) }
            writer.array("parameters", record.parameters) { $0.fact($1) }
            writer.array("figures", record.figures) { $0.figure($1) }
            writer.array("latencies", record.latencies) { $0.latency($1) }
            writer.array("samples", record.samples) { $0.sample($1) }
            writer.expectations(record.expectations)
            writer.remarks(record.remarks)
        }
    }

    /// With its key.
    mutating func expectations(_ verdicts: [RunRecord.Verdict]) {
        array("expectations", verdicts) { writer, verdict in
            writer.object { writer in
                writer.member("text", verdict.text)
                writer.member("holds", verdict.holds)
                writer.member("found", verdict.found)
            }
        }
    }

    /// With its key.
    mutating func remarks(_ remarks: [String]) {
        member("remarks", remarks)
    }

    private mutating func fact(_ fact: RunRecord.Fact) {
        object { writer in
            writer.member("name", fact.name)
            writer.member("value", fact.value)
        }
    }

    private mutating func figure(_ figure: RunRecord.Figure) {
        object { writer in
            writer.member("name", figure.name)
            writer.member("value", figure.value)
            writer.member("unit", figure.unit)
            writer.member("title", figure.title)
            writer.member("is_check", figure.isCheck)
        }
    }

    private mutating func latency(_ latency: RunRecord.Latency) {
        object { writer in
            writer.member("title", latency.title)
            writer.member("name", latency.name)
            writer.member("count", latency.count)
            writer.array("quantiles", latency.quantiles) { writer, quantile in
                writer.object { writer in
                    writer.member("share", quantile.share)
                    writer.member("nanoseconds", quantile.nanoseconds)
                }
            }
        }
    }

    private mutating func sample(_ sample: RunRecord.Sample) {
        object { writer in
            writer.member("seconds", sample.seconds)
            for (name, number) in [
                ("sockets", sample.sockets), ("joined", sample.joined), ("sent", sample.sent),
                ("received", sample.received), ("errors", sample.errors),
            ] {
                writer.member(name, number)
            }
            for (name, nanoseconds) in [
                ("p50_ns", sample.p50), ("p99_ns", sample.p99), ("slowest_ns", sample.slowest),
            ] {
                guard let nanoseconds else { continue }
                writer.member(name, nanoseconds)
            }
            writer.array("processes", sample.processes) { $0.process($1) }
        }
    }

    private mutating func process(_ process: RunRecord.Sample.Process) {
        object { writer in
            writer.member("name", process.name)
            writer.member("cpu_percent", process.cpuPercent)
            writer.member("memory_kb", process.memoryKB)
        }
    }
}
