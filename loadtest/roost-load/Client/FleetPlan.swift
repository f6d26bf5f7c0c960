/// What the sockets of a fleet have in common.
struct FleetPlan {
    /// How many there are at most.
    var slots: Int
    var endpoint: Endpoint
    var sources: SourceAddresses
    /// Which of all workers' sockets is in a slot.
    var number: (Int) -> Int = { $0 }
    /// How many may be connecting at a time.
    var ramp: Int
    /// How many may begin to connect in a second; 0 is any number.
    var rampRate: Double
    /// Seconds between a client's heartbeats; 0 for none.
    var heartbeatSeconds: Int
    var heartbeat: [UInt8]
    /// Whether a join is complete only with the `system` message that says that its subscription is live.
    var awaitsSubscription = false
    /// Whether any message answers a join, as where another protocol is spoken.
    var takesAnyAnswer = false
}

/// What the sockets of a fleet do, and what is done with their messages.
protocol FleetBehaviour: AnyObject {
    func opening(of slot: Int) throws -> Opening

    /// - Parameters:
    ///   - frame: the payload of a text or binary frame, of a socket that is joining or has joined.
    ///   - now: when the bytes were taken from the socket, by `MonotonicClock`.
    /// - Returns: whether it was a message of this run; others are looked at for errors.
    func received(_ frame: UnsafeRawBufferPointer, on slot: Int, at now: UInt64, _ fleet: Fleet<Self>) throws -> Bool

    func joined(_ slot: Int, at now: UInt64, _ fleet: Fleet<Self>) throws

    /// The connection is no more.
    func ended(_ slot: Int, at now: UInt64, _ fleet: Fleet<Self>) throws

    /// The sockets that were ready have been served.
    func turnEnded()
}

/// Bounds how many sockets connect at a time, and how many begin in a second.
struct RampLimiter {
    private let atOnce: Int
    /// Nanoseconds from one to the next; 0 without a bound.
    private let interval: UInt64
    private var due: UInt64 = 0

    init(atOnce: Int, perSecond: Double) {
        self.atOnce = atOnce
        interval = perSecond > 0 ? UInt64(1e9 / perSecond) : 0
    }

    /// When the next socket may begin, if so many are connecting; nil while these are too many.
    func opens(underWay: Int) -> UInt64? { underWay < atOnce ? due : nil }

    mutating func passed(at now: UInt64) {
        // What could not begin in time may follow at once, for no more than a tenth of a second.
        if interval > 0 { due = max(due, now &- min(now, 100_000_000)) + interval }
    }
}

/// What went wrong with sockets, counted by sentence.
struct Troubles: Codable, Sendable {
    private static let most = 24
    private(set) var counts: [String: Int] = [:]
    private(set) var total = 0

    mutating func add(_ sentence: String, _ count: Int = 1) {
        total += count
        // A hub that words each refusal differently must not fill the report.
        let known = counts[sentence] != nil || counts.count < Self.most
        counts[known ? sentence : "something else", default: 0] += count
    }

    mutating func add(_ other: Troubles) {
        for (sentence, count) in other.counts { add(sentence, count) }
    }

    /// The most frequent first.
    var sentences: [String] {
        counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.value) × \($0.key)." }
    }
}
