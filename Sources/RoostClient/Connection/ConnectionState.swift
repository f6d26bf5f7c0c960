/// What a UI shows of the connection. A loss that is shorter than the window of the app's state is not in it.
public enum ConnectionState: Sendable, Equatable {
    /// Nobody asked for a connection, or `disconnect()` ended it.
    case idle
    /// The first connection is on its way, for no longer than the window.
    case connecting
    /// There is a connection, or there was one within the window.
    case connected
    /// There has been none for longer than the window. The client goes on trying. The reason is one sentence.
    case disconnected(reason: String)
    /// The hub closed the connection with a code of 4000 or above, which means that it wants nobody back. `connect()`
    /// tries again.
    case ended(reason: String)
}

/// What really happens to the socket, grace windows aside: for logs, and for whoever retries something.
public enum SocketEvent: Sendable, Equatable {
    case connecting
    case connected
    /// The reason is one sentence.
    case lost(reason: String)
    /// So long until the next attempt.
    case waiting(Duration)
}

/// The connection as a UI is to show it: losses shorter than the grace window of the app's state leave no trace.
package struct DisplayedState {
    package private(set) var state = ConnectionState.idle
    private let windows: GraceWindows
    private var appState: AppState
    /// Since when there has been no connection, while the UI has not been told.
    private var lostAt: Moment?
    private var reason = ""

    package init(_ windows: GraceWindows, _ appState: AppState) {
        self.windows = windows
        self.appState = appState
    }

    /// The time of `tick`.
    package var nextDeadline: Moment? { lostAt.map { $0 + windows[appState] } }

    package mutating func begin(at now: Moment) {
        state = .connecting
        lostAt = now
        reason = "There is no answer from the hub."
    }

    package mutating func up() {
        state = .connected
        lostAt = nil
    }

    /// Every further loss gives the reason that the UI will be told; the time counts from the first.
    package mutating func down(at now: Moment, _ reason: String) {
        self.reason = reason
        switch state {
        case .connected, .connecting: lostAt = lostAt ?? now
        case .disconnected: state = .disconnected(reason: reason)
        case .idle, .ended: break
        }
    }

    package mutating func stop(_ state: ConnectionState) {
        self.state = state
        lostAt = nil
    }

    /// An app that comes back to the front gets the window anew: a loss that nobody could see is not shown to a user
    /// who has only just looked.
    package mutating func change(to appState: AppState, at now: Moment) {
        if appState == .active, self.appState != .active, lostAt != nil { lostAt = now }
        self.appState = appState
    }

    package mutating func tick(_ now: Moment) {
        guard let deadline = nextDeadline, deadline <= now else { return }
        lostAt = nil
        state = .disconnected(reason: reason)
    }
}
