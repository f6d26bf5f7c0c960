import Synchronization

/// Whether the hub is alive and ready, gathered from the rooms that know.
///
/// Alive means that every event loop turns: what does not, a restart mends. Ready means besides that changes flow and
/// that new clients are welcome: the database may be away, and a restart would mend nothing.
package final class Health: Sendable {
    private struct State {
        var feed: String? = "the change feed has not started"
        /// Nil where no channels are listened to.
        var notify: HealthCheck?
        /// Nil where nothing is read from the WAL.
        var capture: HealthCheck?
        /// Nil where the hub is alone.
        var cluster: HealthCheck?
        var isDraining = false
        var isReadyOnce = false
        var whenReady: (@Sendable () -> Void)?
        var probes: HealthProbes?
    }
    private let state = Mutex(State())
    /// A loop turns at least once a second; a turn of more than this is no turn any more.
    private static let loopPatience = Duration.seconds(5)
    /// A batch that costs its session is tried four times, with pauses that grow to some seconds.
    private static let capturePatience = Duration.seconds(30)

    /// Whether a hub that cannot serve row changes is one that clients are not to be sent to.
    private let requiresFeed: Bool

    package init(requiresFeed: Bool = true) {
        self.requiresFeed = requiresFeed
    }

    /// Calls `action` once, the first time the hub is ready.
    package func onFirstReady(_ action: @escaping @Sendable () -> Void) {
        state.withLock { $0.whenReady = action }
    }

    /// Hands over what asks the running rooms; before it is called, only the feed and the drain are judged.
    package func ask(_ probes: HealthProbes) {
        state.withLock { $0.probes = probes }
    }

    /// `problem` is nil when changes flow, else a sentence for the operator.
    package func feed(problem: String?) { note { $0.feed = problem } }

    /// The same of the channels that are listened to, from the start on where there are any.
    package func notify(problem: String?) { note { $0.notify = HealthCheck("notify", problem: problem) } }

    /// The same of what is read from the WAL.
    package func capture(problem: String?) { note { $0.capture = HealthCheck("capture", problem: problem) } }

    /// The same of the other hubs of a cluster. A hub that does not reach them serves its clients all the same, and where all of them
    /// have lost Redis, no balancer is to be left without any: it is shown, and does not count.
    package func cluster(problem: String?) {
        note { $0.cluster = HealthCheck("cluster", problem: problem, isDegraded: true) }
    }

    private func note(_ change: (inout State) -> Void) {
        let first = state.withLock { state -> (@Sendable () -> Void)? in
            change(&state)
            guard state.feed == nil, state.notify?.problem == nil, state.capture?.problem == nil, !state.isReadyOnce
            else { return nil }
            state.isReadyOnce = true
            return state.whenReady
        }
        first?()
    }

    package func drain() {
        state.withLock { $0.isDraining = true }
    }

    /// Why the hub is not ready; nil when it is.
    package var problem: String? { readiness.lazy.filter { !$0.isDegraded }.compactMap(\.problem).first }

    /// The checks that `/livez` shows, one for each event loop.
    package var liveness: [HealthCheck] { Self.loops(state.withLock { $0.probes }) }

    /// The checks that `/readyz` shows, the most important first.
    package var readiness: [HealthCheck] {
        let state = state.withLock { $0 }
        let drain = HealthCheck("drain", problem: state.isDraining ? "the hub is draining before it stops" : nil)
        let feed = HealthCheck("feed", problem: state.feed, isDegraded: !requiresFeed)
        // What rests on Postgres counts as row changes do.
        let others = [Self.lag(state.probes)] + [state.notify, Self.capture(state)].compactMap { $0 }
        return [drain, feed]
            + others.map { HealthCheck($0.name, problem: $0.problem, isDegraded: $0.isDegraded || !requiresFeed) }
            + [state.cluster].compactMap { $0 } + Self.loops(state.probes)
    }

    /// Of the checks those that tell that nothing moves although something waits, whatever the threads that ought to move it
    /// say: one that hangs says nothing.
    package var progress: [HealthCheck] {
        let probes = state.withLock { $0.probes }
        return [Self.lag(probes), HealthCheck("capture", problem: Self.captureStall(probes))]
    }

    private static func capture(_ state: State) -> HealthCheck? {
        state.capture.map { HealthCheck($0.name, problem: $0.problem ?? captureStall(state.probes)) }
    }

    private static func captureStall(_ probes: HealthProbes?) -> String? {
        guard let waiting = probes?.capture(), waiting > capturePatience else { return nil }
        return "changes that were read from the WAL have waited \(waiting.components.seconds) s to be stored"
    }

    private static func loops(_ probes: HealthProbes?) -> [HealthCheck] {
        (probes?.loops() ?? []).enumerated().map { index, silence in
            HealthCheck(
                "loop \(index)",
                problem: silence < loopPatience
                    ? nil : "event loop \(index) has not turned for \(silence.components.seconds) s; restart the hub")
        }
    }

    private static func lag(_ probes: HealthProbes?) -> HealthCheck {
        guard let probes, let behind = probes.feed(), behind > probes.mostBehind else {
            return HealthCheck("lag", problem: nil)
        }
        return HealthCheck("lag", problem: "the change feed is \(behind.components.seconds) s behind the database")
    }
}

/// One thing that has to be right for the hub to be alive, or ready.
package struct HealthCheck: Sendable, Equatable {
    package let name: String
    /// A sentence without a full stop; nil where all is well.
    package let problem: String?
    /// The problem makes the hub do less, and is no reason to send clients elsewhere.
    package let isDegraded: Bool

    package init(_ name: String, problem: String?, isDegraded: Bool = false) {
        self.name = name
        self.problem = problem
        self.isDegraded = isDegraded
    }
}

/// What health asks of the running rooms, from any thread.
package struct HealthProbes: Sendable {
    /// Tells for each event loop how long ago it last did its work of every second.
    let loops: @Sendable () -> [Duration]
    /// How far the changes that were handed on are behind the database; nil while the feed is down, which says so
    /// itself.
    let feed: @Sendable () -> Duration?
    /// How long changes that were read from the WAL have waited to be stored; nil where none do.
    let capture: @Sendable () -> Duration?
    /// How far they may be behind for the hub to count as ready.
    let mostBehind: Duration

    package init(
        mostBehind: Duration, loops: @escaping @Sendable () -> [Duration], feed: @escaping @Sendable () -> Duration?,
        capture: @escaping @Sendable () -> Duration? = { nil }
    ) {
        self.capture = capture
        self.mostBehind = mostBehind
        self.loops = loops
        self.feed = feed
    }
}
