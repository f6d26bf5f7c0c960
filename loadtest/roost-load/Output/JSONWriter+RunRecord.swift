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
