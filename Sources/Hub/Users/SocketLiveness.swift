import Synchronization

/// When a socket's client last proved that it is alive, and whether it owes a proof: an open socket shows neither.
///
/// Exists for sockets whose user or device is watched (`UserPresence.setWatched`), which are few. Written by the
/// socket's loop, and read on any thread by questions about its user.
package final class SocketLiveness: Sendable {
    struct State {
        /// When the client was last heard, in monotonic milliseconds.
        var provenAt: Int64
        /// Since when the client has owed an answer; nil if it owes none.
        var askedAt: Int64?
        /// How long the client counts as present after its last proof, in milliseconds.
        var window: Int64 = 0
    }

    private let state: Mutex<State>

    /// How long a socket may owe a proof, in milliseconds: phones on bad networks answer after seconds, and were never
    /// gone.
    package static let patience: Int64 = 5000

    init(at now: Int64) {
        state = Mutex(State(provenAt: now))
    }

    var latest: State { state.withLock { $0 } }

    /// Records that the client answered the last ping.
    func recordAnswer(at now: Int64) {
        state.withLock { state in
            state.provenAt = max(state.provenAt, now)
            state.askedAt = nil
        }
    }

    /// Records any other message of the client. An open ping must still be answered: a client that is stopped after
    /// sending a frame that crossed the ping is not asked again.
    func recordMessage(at now: Int64) {
        state.withLock { state in
            state.provenAt = max(state.provenAt, now)
            if state.askedAt != nil { state.askedAt = now }
        }
    }

    func recordPing(at now: Int64) { state.withLock { $0.askedAt = $0.askedAt ?? now } }

    func setGrace(window: Int64) { state.withLock { $0.window = window } }
}

extension SocketLiveness.State {
    /// Whether the client counts as gone, for as long as it owes its proof.
    func isSilent(at now: Int64) -> Bool { askedAt.map { now - $0 >= SocketLiveness.patience } ?? false }
}
