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
            writer.key("scenario")
            writer.value(record.scenario)
            writer.key("target")
            writer.value(record.target)
            writer.key("command")
            writer.array(record.command) { $0.value($1) }
            writer.key("started_at")
            writer.value(record.startedAt)
            writer.key("measured_seconds")
            writer.value(record.measuredSeconds)
            writer.key("conditions")
            writer.array(record.conditions) { $0.fact($1) }
            writer.key("parameters")
            writer.array(record.parameters) { $0.fact($1) }
            writer.key("figures")
            writer.array(record.figures) { $0.figure($1) }
            writer.key("latencies")
            writer.array(record.latencies) { $0.latency($1) }
            writer.key("samples")
            writer.array(record.samples) { $0.sample($1) }
            writer.expectations(record.expectations)
            writer.remarks(record.remarks)
        }
    }

    /// With its key.
    mutating func expectations(_ verdicts: [RunRecord.Verdict]) {
        key("expectations")
        array(verdicts) { writer, verdict in
            writer.object { writer in
                writer.key("text")
                writer.value(verdict.text)
                writer.key("holds")
                writer.value(verdict.holds)
                writer.key("found")
                writer.value(verdict.found)
            }
        }
    }

    /// With its key.
    mutating func remarks(_ remarks: [String]) {
        key("remarks")
        array(remarks) { $0.value($1) }
    }

    private mutating func fact(_ fact: RunRecord.Fact) {
        object { writer in
            writer.key("name")
            writer.value(fact.name)
            writer.key("value")
            writer.value(fact.value)
        }
    }

    private mutating func figure(_ figure: RunRecord.Figure) {
        object { writer in
            writer.key("name")
            writer.value(figure.name)
            writer.key("value")
            writer.value(figure.value)
            writer.key("unit")
            writer.value(figure.unit)
            writer.key("title")
            writer.value(figure.title)
            writer.key("is_check")
            writer.value(figure.isCheck)
        }
    }

    private mutating func latency(_ latency: RunRecord.Latency) {
        object { writer in
            writer.key("title")
            writer.value(latency.title)
            writer.key("name")
            writer.value(latency.name)
            writer.key("count")
            writer.value(latency.count)
            writer.key("quantiles")
            writer.array(latency.quantiles) { writer, quantile in
                writer.object { writer in
                    writer.key("share")
                    writer.value(quantile.share)
                    writer.key("nanoseconds")
                    writer.value(quantile.nanoseconds)
                }
            }
        }
    }

    private mutating func sample(_ sample: RunRecord.Sample) {
        object { writer in
            writer.key("seconds")
            writer.value(sample.seconds)
            for (name, number) in [
                ("sockets", sample.sockets), ("joined", sample.joined), ("sent", sample.sent),
                ("received", sample.received), ("errors", sample.errors),
            ] {
                writer.key(name)
                writer.value(number)
            }
            for (name, nanoseconds) in [
                ("p50_ns", sample.p50), ("p99_ns", sample.p99), ("slowest_ns", sample.slowest),
            ] {
                guard let nanoseconds else { continue }
                writer.key(name)
                writer.value(nanoseconds)
            }
            writer.key("processes")
            writer.array(sample.processes) { $0.process($1) }
        }
    }

    private mutating func process(_ process: RunRecord.Sample.Process) {
        object { writer in
            writer.key("name")
            writer.value(process.name)
            writer.key("cpu_percent")
            writer.value(process.cpuPercent)
            writer.key("memory_kb")
            writer.value(process.memoryKB)
        }
    }
}

/// Builds one JSON document in the order written; commas come by themselves.
struct JSONWriter {
    private var bytes: [UInt8] = []
    private var needsComma = false

    var text: String { String(decoding: bytes, as: UTF8.self) }

    mutating func key(_ name: String) {
        value(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    mutating func value(_ text: String) {
        separate()
        JSONString.encode(text, into: &bytes)
    }

    mutating func value(_ number: some BinaryInteger) {
        separate()
        bytes += String(number).utf8
    }

    mutating func value(_ flag: Bool) {
        separate()
        bytes += (flag ? "true" : "false").utf8
    }

    /// The shortest digits that mean exactly this number; JSON has no NaN and no infinity.
    mutating func value(_ number: Double) {
        separate()
        let digits = number.isFinite ? "\(number)" : "null"
        bytes += (digits.hasSuffix(".0") ? String(digits.dropLast(2)) : digits).utf8
    }

    mutating func null() {
        separate()
        bytes += "null".utf8
    }

    mutating func object(_ members: (inout JSONWriter) -> Void) { nest("{", "}", members) }

    mutating func array<Element>(_ elements: [Element], _ each: (inout JSONWriter, Element) -> Void) {
        nest("[", "]") { writer in
            for element in elements { each(&writer, element) }
        }
    }

    private mutating func nest(_ open: Unicode.Scalar, _ close: Unicode.Scalar, _ body: (inout JSONWriter) -> Void) {
        separate()
        bytes.append(UInt8(ascii: open))
        needsComma = false
        body(&self)
        bytes.append(UInt8(ascii: close))
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }
}
