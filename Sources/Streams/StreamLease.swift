/// Tracks whether a stream's producer is still present, by its connections and by when it was last heard.
///
/// A pure value on a monotonic clock, in milliseconds.
package struct StreamLease: Sendable {
    package struct Rules: Sendable {
        /// The silence after which a producer is taken for gone, unless the stream says otherwise.
        package var stalledAfter: Int64 = 15_000
        /// The time from the producer's last sign, or its connection's break, until the stream ends.
        package var abortedAfter: Int64 = 60_000
        /// The same for streams whose producers have no lease; zero: never.
        package var abandonedAfter: Int64 = 3_600_000

        package init() {}
    }

    package enum Change: Sendable, Equatable { case stalled, open, aborted }

    /// Seconds of silence, as set at creation; nil for the rules' default.
    private let seconds: Int?
    private var holds: Set<StreamHold> = []
    private var heardAt: Int64
    package private(set) var isStalled = false

    /// Connections through which the stream's producers append.
    package var connections: some Collection<StreamHold> { holds }

    package init(_ configuration: StreamConfiguration, at now: Int64) {
        seconds = configuration.lease
        heardAt = now
    }

    /// The producer appended something.
    package mutating func producerHeard(at now: Int64) -> Change? {
        heardAt = now
        defer { isStalled = false }
        return isStalled ? .open : nil
    }

    package mutating func addHold(_ hold: StreamHold, at now: Int64) -> Change? {
        holds.insert(hold)
        return producerHeard(at: now)
    }

    /// A producer finished with a connection properly: it may continue on another.
    package mutating func finishHold(_ hold: StreamHold, at now: Int64) {
        if holds.remove(hold) != nil { heardAt = now }
    }

    /// A connection that had appended ended without notice.
    package mutating func releaseHold(_ hold: StreamHold, at now: Int64) -> Change? {
        guard holds.remove(hold) != nil, holds.isEmpty, seconds != 0, !isStalled else { return nil }
        // Recent signs by other ways do not count: the producer was writing on this connection.
        heardAt = now
        isStalled = true
        return .stalled
    }

    /// A connection to another hub ended without notice.
    package mutating func brokeElsewhere(at now: Int64) {
        guard holds.isEmpty, seconds != 0 else { return }
        heardAt = now
        isStalled = true
    }

    /// The producer's recent signs may have been missed: its time starts over.
    package mutating func restartClock(at now: Int64) { heardAt = now }

    /// After a restart no producer is connected: one with a lease begins as stalled, with its full time.
    package mutating func restart(hasProducer: Bool, at now: Int64) {
        heardAt = now
        isStalled = hasProducer && seconds != 0 || (seconds ?? 0) > 0
    }

    private func allowedSilence(_ rules: Rules, hasProducer: Bool) -> Int64? {
        switch seconds {
        case 0?: nil
        case let seconds?: Int64(seconds) * 1000
        case nil: hasProducer ? rules.stalledAfter : nil
        }
    }

    /// - Parameter hasProducer: as in `StreamLog`.
    package mutating func advanceClock(to now: Int64, _ rules: Rules, hasProducer: Bool) -> Change? {
        guard let silence = allowedSilence(rules, hasProducer: hasProducer) else {
            return seconds != 0 && rules.abandonedAfter > 0 && now - heardAt >= rules.abandonedAfter ? .aborted : nil
        }
        if isStalled || now - heardAt >= silence {
            if now - heardAt >= max(rules.abortedAfter, silence) { return .aborted }
            defer { isStalled = true }
            return isStalled ? nil : .stalled
        }
        return nil
    }
}
