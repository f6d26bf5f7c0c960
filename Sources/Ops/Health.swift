import Synchronization

/// Whether the hub is alive and ready, gathered from the rooms that know.
package final class Health: Sendable {
    private struct State {
        var feed: String? = "the change feed has not started"
        var isDraining = false
        var isReadyOnce = false
        var whenReady: (@Sendable () -> Void)?
    }
    private let state = Mutex(State())

    package init() {}

    /// Calls `action` once, the first time the hub is ready.
    package func onFirstReady(_ action: @escaping @Sendable () -> Void) {
        state.withLock { $0.whenReady = action }
    }

    /// `problem` is nil when changes flow, else a sentence for the operator.
    package func feed(problem: String?) {
        let first = state.withLock { state -> (@Sendable () -> Void)? in
            state.feed = problem
            guard problem == nil, !state.isReadyOnce else { return nil }
            state.isReadyOnce = true
            return state.whenReady
        }
        first?()
    }

    package func drain() {
        state.withLock { $0.isDraining = true }
    }

    /// Why the hub is not ready; nil when it is.
    package var problem: String? {
        state.withLock { $0.isDraining ? "the hub is draining before it stops" : $0.feed }
    }
}
