/// All that a run has found: what the table, the JSON line and the HTML report show.
struct RunRecord: Sendable {
    /// What somebody typed to get it.
    var command: [String] = []
    var scenario: String
    /// Where it was aimed, without the token.
    var target: String
    /// Seconds since 1970.
    var startedAt: Double
    /// Seconds that were measured: without connecting, warm-up and settling.
    var measuredSeconds: Double = 0
    /// What it ran on and with: name and value, in the order in which they are shown.
    var conditions: [Fact] = []
    var parameters: [Fact] = []
    /// Single figures, as `delivered` or `hub_cpu_us_per_delivery`: what `--expect` may name, beside percentiles.
    var figures: [Figure] = []
    /// One for each kind of latency; the first is the one that matters most.
    var latencies: [Latency] = []
    /// One a second.
    var samples: [Sample] = []
    var expectations: [Verdict] = []
    /// One sentence each: what went wrong or must be known to read the figures.
    var remarks: [String] = []

    struct Fact: Sendable {
        var name: String
        var value: String
    }

    struct Figure: Sendable {
        /// Lower case with underscores, as it stands in the JSON line.
        var name: String
        var value: Double
        /// As "µs", "KB", "/s", "%", or empty for a count.
        var unit: String = ""
        /// What it is, in a few words; empty hides it from the table.
        var title: String = ""
        /// Zero unless something went wrong, as `lost`: it stands among the checks, and a run in which it is not zero has failed.
        var isCheck = false
    }

    struct Latency: Sendable {
        /// As "commit → client".
        var title: String
        /// The prefix of its figures in JSON and `--expect`, as "commit".
        var name: String
        var count: Int
        /// Nanoseconds, in ascending order of the share (0...1); from 0 to 1, enough of them for a plot.
        var quantiles: [Quantile]
        struct Quantile: Sendable {
            var share: Double
            var nanoseconds: UInt64
        }
    }

    struct Sample: Sendable {
        /// Since the start of the measurement; negative while connecting and warming up.
        var seconds: Double
        var sockets: Int
        var joined: Int = 0
        /// Messages that were sent in this second; `received` and `errors` are of this second, too.
        var sent: Int = 0
        var received: Int = 0
        var errors: Int = 0
        /// Nanoseconds of the first kind of latency, of this second's deliveries; nil where there were none.
        var p50: UInt64?
        var p99: UInt64?
        var slowest: UInt64?
        var processes: [Process] = []
        struct Process: Sendable {
            var name: String
            /// Percent of one core.
            var cpuPercent: Double
            var memoryKB: Double
        }
    }

    struct Verdict: Sendable {
        var text: String
        var holds: Bool
        /// The value that was found, as text.
        var found: String
    }
}
