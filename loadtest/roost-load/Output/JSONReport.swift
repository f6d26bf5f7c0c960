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
                writer.writeKey(name)
                value(&writer)
            }
            add("scenario") { $0.writeValue(record.scenario) }
            add("target") { $0.writeValue(record.target) }
            add("started_at") { $0.writeValue(record.startedAt) }
            add("measured_seconds") { $0.writeValue(record.measuredSeconds) }
            add("passed") { $0.writeValue(Outcome(of: record).verdict != .failed) }
            // Lists keep their names whatever a figure is called.
            used.formUnion(["expectations", "remarks"])
            for figure in record.figures { add(figure.name) { $0.writeValue(figure.value) } }
            for latency in record.latencies {
                add("\(latency.name)_count") { $0.writeValue(latency.count) }
                for percentile in LatencyPercentile.allCases {
                    add("\(latency.name)_\(percentile.rawValue)_us") { writer in
                        guard let found = latency[percentile] else { return writer.writeNull() }
                        writer.writeValue(Double(found) / 1000)
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
            writer.writeMember("scenario", record.scenario)
            writer.writeMember("target", record.target)
            writer.array("command", record.command) { $0.writeValue($1) }
            writer.writeMember("started_at", record.startedAt)
            writer.writeMember("measured_seconds", record.measuredSeconds)
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
                writer.writeMember("text", verdict.text)
                writer.writeMember("holds", verdict.holds)
                writer.writeMember("found", verdict.found)
            }
        }
    }

    /// With its key.
    mutating func remarks(_ remarks: [String]) {
        writeMember("remarks", remarks)
    }

    private mutating func fact(_ fact: RunRecord.Fact) {
        object { writer in
            writer.writeMember("name", fact.name)
            writer.writeMember("value", fact.value)
        }
    }

    private mutating func figure(_ figure: RunRecord.Figure) {
        object { writer in
            writer.writeMember("name", figure.name)
            writer.writeMember("value", figure.value)
            writer.writeMember("unit", figure.unit)
            writer.writeMember("title", figure.title)
            writer.writeMember("is_check", figure.isCheck)
        }
    }

    private mutating func latency(_ latency: RunRecord.Latency) {
        object { writer in
            writer.writeMember("title", latency.title)
            writer.writeMember("name", latency.name)
            writer.writeMember("count", latency.count)
            writer.array("quantiles", latency.quantiles) { writer, quantile in
                writer.object { writer in
                    writer.writeMember("share", quantile.share)
                    writer.writeMember("nanoseconds", quantile.nanoseconds)
                }
            }
        }
    }

    private mutating func sample(_ sample: RunRecord.Sample) {
        object { writer in
            writer.writeMember("seconds", sample.seconds)
            for (name, number) in [
                ("sockets", sample.sockets), ("joined", sample.joined), ("sent", sample.sent),
                ("received", sample.received), ("errors", sample.errors),
            ] {
                writer.writeMember(name, number)
            }
            for (name, nanoseconds) in [
                ("p50_ns", sample.p50), ("p99_ns", sample.p99), ("slowest_ns", sample.slowest),
            ] {
                guard let nanoseconds else { continue }
                writer.writeMember(name, nanoseconds)
            }
            writer.array("processes", sample.processes) { $0.process($1) }
        }
    }

    private mutating func process(_ process: RunRecord.Sample.Process) {
        object { writer in
            writer.writeMember("name", process.name)
            writer.writeMember("cpu_percent", process.cpuPercent)
            writer.writeMember("memory_kb", process.memoryKB)
        }
    }
}
