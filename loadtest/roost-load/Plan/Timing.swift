/// The moments of a run, by `Clock`, which all processes of a machine share.
struct Timing: Codable, Sendable {
    var start: UInt64
    /// Latencies count from here on: the end of the warm-up.
    var measuredFrom: UInt64
    /// Where the schedule ends.
    var end: UInt64

    init(start: UInt64, warmUp: Double, seconds: Double) {
        self.start = start
        measuredFrom = start + UInt64(warmUp * 1e9)
        end = measuredFrom + UInt64(seconds * 1e9)
    }
}
