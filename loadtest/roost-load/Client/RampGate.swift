/// How many sockets may begin to connect now.
struct RampGate {
    private let atOnce: Int
    /// Nanoseconds from one to the next; 0 without a bound.
    private let interval: UInt64
    private var due: UInt64 = 0

    init(atOnce: Int, perSecond: Double) {
        self.atOnce = atOnce
        interval = perSecond > 0 ? UInt64(1e9 / perSecond) : 0
    }

    /// When the next may, if there are `underWay`; nil while there are too many.
    func opens(underWay: Int) -> UInt64? { underWay < atOnce ? due : nil }

    mutating func passed(at now: UInt64) {
        // What could not begin in time may follow at once, for no more than a tenth of a second.
        if interval > 0 { due = max(due, now &- min(now, 100_000_000)) + interval }
    }
}
