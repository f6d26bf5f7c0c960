import Synchronization

/// When a socket last proved that its client is there, and whether it owes a proof: an open socket says neither.
///
/// Made for sockets whose user or device is watched (`UserPresence.watch`), which are few. The loop that has the socket writes it;
/// everybody who asks about its user reads it, on any thread.
package final class SocketLiveness: Sendable {
    struct State {
        /// When the client was heard last, in monotonic milliseconds.
        var provenAt: Int64
        /// Since when it has been silent on what it was asked; nil where it owes nothing.
        var askedAt: Int64?
        /// How long it counts as there after its last proof, in milliseconds.
        var window: Int64 = 0
    }

    private let state: Mutex<State>

    /// How long a socket may owe a proof, in milliseconds: phones on bad networks answer after seconds, and were never gone.
    package static let patience: Int64 = 5000

    init(at now: Int64) {
        state = Mutex(State(provenAt: now))
    }

    var latest: State { state.withLock { $0 } }

    /// The client answered the last ping.
    func answers(at now: Int64) {
        state.withLock { state in
            state.provenAt = max(state.provenAt, now)
            state.askedAt = nil
        }
    }

    /// Something else came from the client. The ping that is open is still owed: who is stopped behind a frame that crossed it is not
    /// asked again.
    func isHeard(at now: Int64) {
        state.withLock { state in
            state.provenAt = max(state.provenAt, now)
            if state.askedAt != nil { state.askedAt = now }
        }
    }

    func isAsked(at now: Int64) { state.withLock { $0.askedAt = $0.askedAt ?? now } }

    func adopt(window: Int64) { state.withLock { $0.window = window } }
}

extension SocketLiveness.State {
    /// Whether its client is as good as gone, for as long as it owes its proof.
    func isSilent(at now: Int64) -> Bool { askedAt.map { now - $0 >= SocketLiveness.patience } ?? false }
}
