/// When what is due: open loop, so that what is late delays nothing that comes after it.
struct Schedule: Sendable {
    /// A second; zero schedules nothing.
    let rate: Double
    let burst: Int
    let total: Int

    init(rate: Double, burst: Int = 1, seconds: Double) {
        self.rate = rate
        self.burst = burst
        total = Int((rate * seconds).rounded())
    }

    /// Nanoseconds from the start.
    func offset(of tick: Int) -> UInt64 { UInt64(Double(tick / burst * burst) * 1e9 / rate) }

    /// How many ticks are due `elapsed` nanoseconds from the start.
    func due(after elapsed: UInt64) -> Int {
        guard rate > 0 else { return 0 }
        return min(total, Int(Double(elapsed) * rate / 1e9) / burst * burst + burst)
    }
}
