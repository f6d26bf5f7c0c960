import Synchronization

/// Whether the hub is alive and ready, collected from the rooms that know.
///
/// Alive means that every event loop turns; otherwise a restart helps. Ready means in addition that changes flow and
/// that new clients are welcome: the database may be away, and then a restart would not help.
package final class Health: Sendable {
    private struct State {
        var feed: String? = "the change feed has not started"
        /// Nil without channels to listen to.
        var notify: HealthCheck?
        /// Nil unless tables are read from the WAL.
        var capture: HealthCheck?
        /// Nil for a single hub.
        var cluster: HealthCheck?
        var isDraining = false
        var isReadyOnce = false
        var whenReady: (@Sendable () -> Void)?
        var probes: HealthProbes?
    }
    private let state = Mutex(State())
    /// A loop turns at least once a second; beyond this it counts as stuck.
    private static let loopPatience = Duration.seconds(5)
    /// A batch that ends its session is tried four times, with pauses that grow to some seconds.
    private static let capturePatience = Duration.seconds(30)

    /// Whether clients should be sent elsewhere while this hub cannot serve row changes.
    private let requiresFeed: Bool

    package init(requiresFeed: Bool = true) {
        self.requiresFeed = requiresFeed
    }

    /// Calls `action` once, the first time the hub is ready.
    package func onFirstReady(_ action: @escaping @Sendable () -> Void) {
        state.withLock { $0.whenReady = action }
    }

    /// Sets the probes of the running rooms; until then, only the feed and the drain are checked.
    package func setProbes(_ probes: HealthProbes) {
        state.withLock { $0.probes = probes }
    }

    /// - Parameter problem: nil while changes flow, else a sentence for the operator.
    package func reportFeed(problem: String?) { updateState { $0.feed = problem } }

    /// - Parameter problem: nil while the hub listens, else a sentence. Called from the start if there are channels to
    ///   listen to.
    package func reportNotify(problem: String?) { updateState { $0.notify = HealthCheck("notify", problem: problem) } }

    /// - Parameter problem: nil while changes are read from the WAL, else a sentence.
    package func reportCapture(problem: String?) {
        updateState { $0.capture = HealthCheck("capture", problem: problem) }
    }

    /// - Parameter problem: nil while the other hubs are connected, else a sentence. Only degrades the hub: it still
    ///   serves its clients, and when all hubs lose Redis, a balancer must not be left without any.
    package func reportCluster(problem: String?) {
        updateState { $0.cluster = HealthCheck("cluster", problem: problem, isDegraded: true) }
    }

    private func updateState(_ change: (inout State) -> Void) {
        let first = state.withLock { state -> (@Sendable () -> Void)? in
            change(&state)
            guard state.feed == nil, state.notify?.problem == nil, state.capture?.problem == nil, !state.isReadyOnce
            else { return nil }
            state.isReadyOnce = true
            return state.whenReady
        }
        first?()
    }

    package func startDrain() {
        state.withLock { $0.isDraining = true }
    }

    /// The reason why the hub is not ready; nil when it is.
    package var problem: String? { readiness.lazy.filter { !$0.isDegraded }.compactMap(\.problem).first }

    /// The checks of `/livez`, one for each event loop.
    package var liveness: [HealthCheck] { Self.loopChecks(state.withLock { $0.probes }) }

    /// The checks of `/readyz`, the most important first.
    package var readiness: [HealthCheck] {
        let state = state.withLock { $0 }
        let drain = HealthCheck("drain", problem: state.isDraining ? "the hub is draining before it stops" : nil)
        let feed = HealthCheck("feed", problem: state.feed, isDegraded: !requiresFeed)
        // Features that depend on Postgres count as row changes do.
        let others = [Self.lagCheck(state.probes)] + [state.notify, Self.captureCheck(state)].compactMap { $0 }
        return [drain, feed]
            + others.map { HealthCheck($0.name, problem: $0.problem, isDegraded: $0.isDegraded || !requiresFeed) }
            + [state.cluster].compactMap { $0 } + Self.loopChecks(state.probes)
    }

    /// The checks that detect a standstill although work is waiting, independently of the responsible threads: a thread
    /// that hangs reports nothing.
    package var progress: [HealthCheck] {
        let probes = state.withLock { $0.probes }
        return [Self.lagCheck(probes), HealthCheck("capture", problem: Self.captureStall(probes))]
    }

    private static func captureCheck(_ state: State) -> HealthCheck? {
        state.capture.map { HealthCheck($0.name, problem: $0.problem ?? captureStall(state.probes)) }
    }

    private static func captureStall(_ probes: HealthProbes?) -> String? {
        guard let waiting = probes?.capture(), waiting > capturePatience else { return nil }
        return "changes that were read from the WAL have waited \(waiting.components.seconds) s to be stored"
    }

    private static func loopChecks(_ probes: HealthProbes?) -> [HealthCheck] {
        (probes?.loops() ?? []).enumerated().map { index, silence in
            HealthCheck(
                "loop \(index)",
                problem: silence < loopPatience
                    ? nil : "event loop \(index) has not turned for \(silence.components.seconds) s; restart the hub")
        }
    }

    private static func lagCheck(_ probes: HealthProbes?) -> HealthCheck {
        guard let probes, let behind = probes.feed(), behind > probes.mostBehind else {
            return HealthCheck("lag", problem: nil)
        }
        return HealthCheck("lag", problem: "the change feed is \(behind.components.seconds) s behind the database")
    }
}

/// One condition for the hub to be alive, or ready.
package struct HealthCheck: Sendable, Equatable {
    package let name: String
    /// A sentence without a full stop; nil if there is no problem.
    package let problem: String?
    /// The problem limits the hub, but is no reason to send clients elsewhere.
    package let isDegraded: Bool

    package init(_ name: String, problem: String?, isDegraded: Bool = false) {
        self.name = name
        self.problem = problem
        self.isDegraded = isDegraded
    }
}

/// Probes of the running rooms, callable from any thread.
package struct HealthProbes: Sendable {
    /// The time since each event loop last did its work of every second.
    let loops: @Sendable () -> [Duration]
    /// The delay of the feed behind the database; nil while the feed is down, which reports that itself.
    let feed: @Sendable () -> Duration?
    /// The time that changes from the WAL have waited to be stored; nil if none wait.
    let capture: @Sendable () -> Duration?
    /// The greatest delay of the feed at which the hub is ready.
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
