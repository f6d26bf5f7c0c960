import Synchronization

/// When a socket last proved that its client is there, and whether it owes a proof: an open socket says neither.
///
/// The loop that has the socket writes it; everybody who asks about its user reads it, on any thread.
package final class SocketLiveness: Sendable {
    struct State {
        /// When the client was heard last: the time of whatever came from it, or of the ping that it answered. In monotonic
        /// milliseconds.
        var provenAt: Int64
        /// When it was asked what it has not answered; nil where it owes nothing.
        var askedAt: Int64?
        /// How long it counts as there after its last proof, in milliseconds.
        var window: Int64
        /// What its app says that it is doing; nil where it does not say.
        var appState: ReportedAppState?
        /// Its proof is to be asked for every few seconds.
        var isWatched = false
    }

    package let place: SocketPlace
    /// In monotonic milliseconds.
    let openedAt: Int64
    private let state: Mutex<State>

    /// How long a socket may owe a proof, in milliseconds: phones on bad networks answer after seconds, and were never gone.
    package static let patience: Int64 = 5000

    package init(_ place: SocketPlace, at now: Int64) {
        self.place = place
        openedAt = now
        state = Mutex(State(provenAt: now, window: 0))
    }

    var latest: State { state.withLock { $0 } }
    /// Whether its proof is to be asked for every few seconds.
    package var isWatched: Bool { state.withLock { $0.isWatched } }

    func watch(_ isWatched: Bool) { state.withLock { $0.isWatched = isWatched } }

    func isProven(at now: Int64) {
        state.withLock { state in
            state.provenAt = max(state.provenAt, now)
            state.askedAt = nil
        }
    }

    func isAsked(at now: Int64) { state.withLock { $0.askedAt = $0.askedAt ?? now } }

    func changes(window: Int64, appState: ReportedAppState?) {
        state.withLock { ($0.window, $0.appState) = (window, appState) }
    }
}

extension SocketLiveness.State {
    /// Whether the user sees what arrives: the app is on the screen, or does not say.
    var isShown: Bool { appState.map { $0 == .active } ?? true }

    /// Whether its client is as good as gone, for as long as it owes its proof.
    func isSilent(at now: Int64) -> Bool { askedAt.map { now - $0 >= SocketLiveness.patience } ?? false }
}
