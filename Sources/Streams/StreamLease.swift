/// Whether a stream's producer is still there: by its connections, and by when it was heard last.
///
/// A pure value on a monotonic clock, in milliseconds.
package struct StreamLease: Sendable {
    package struct Rules: Sendable {
        /// Silence after which a producer is taken for gone, unless the stream says otherwise.
        package var stalledAfter: Int64 = 15_000
        /// From when it was heard last, or its connection broke, until the stream ends.
        package var abortedAfter: Int64 = 60_000
        /// The same for streams whose producers have no lease; zero: never.
        package var abandonedAfter: Int64 = 3_600_000

        package init() {}
    }

    package enum Change: Sendable, Equatable { case stalled, open, aborted }

    /// Seconds of silence, as the stream was made; nil for the rules'.
    private let seconds: Int?
    private var holds: Set<StreamHold> = []
    private var heardAt: Int64
    package private(set) var isStalled = false

    /// Connections by which the stream's producers append.
    package var connections: some Collection<StreamHold> { holds }

    package init(_ configuration: StreamConfiguration, at now: Int64) {
        seconds = configuration.lease
        heardAt = now
    }

    /// The producer appended something.
    package mutating func heard(at now: Int64) -> Change? {
        heardAt = now
        defer { isStalled = false }
        return isStalled ? .open : nil
    }

    package mutating func hold(_ hold: StreamHold, at now: Int64) -> Change? {
        holds.insert(hold)
        return heard(at: now)
    }

    /// A producer has said all that it had to say by a connection: it may go on by another.
    package mutating func finish(_ hold: StreamHold, at now: Int64) {
        if holds.remove(hold) != nil { heardAt = now }
    }

    /// A connection by which something was appended has ended without a word.
    package mutating func release(_ hold: StreamHold, at now: Int64) -> Change? {
        guard holds.remove(hold) != nil, holds.isEmpty, seconds != 0, !isStalled else { return nil }
        // What was said by other ways in the last moments does not count: the writer had this one.
        heardAt = now
        isStalled = true
        return .stalled
    }

    /// A connection that another hub had has ended without a word.
    package mutating func brokeElsewhere(at now: Int64) {
        guard holds.isEmpty, seconds != 0 else { return }
        heardAt = now
        isStalled = true
    }

    /// What the producer said a while ago may not have been heard: it has all of its time from here on.
    package mutating func postpone(at now: Int64) { heardAt = now }

    /// After a restart nobody is connected: whoever has a lease begins in doubt, with all of its time.
    package mutating func restart(hasProducer: Bool, at now: Int64) {
        heardAt = now
        isStalled = hasProducer && seconds != 0 || (seconds ?? 0) > 0
    }

    private func silence(_ rules: Rules, hasProducer: Bool) -> Int64? {
        switch seconds {
        case 0?: nil
        case let seconds?: Int64(seconds) * 1000
        case nil: hasProducer ? rules.stalledAfter : nil
        }
    }

    /// - Parameter hasProducer: as `StreamLog` has it.
    package mutating func advance(to now: Int64, _ rules: Rules, hasProducer: Bool) -> Change? {
        guard let silence = silence(rules, hasProducer: hasProducer) else {
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
