/// The connection's state for the UI. Losses shorter than the grace window of the app's state do not appear here.
public enum ConnectionState: Sendable, Equatable {
    /// No connection was requested, or `disconnect()` ended it.
    case idle
    /// The first connection is being opened, for no longer than the grace window.
    case connecting
    /// There is a connection, or there was one within the grace window.
    case connected
    /// There has been no connection for longer than the grace window. The client keeps trying. The reason is one
    /// sentence.
    case disconnected(reason: String)
    /// The hub closed the connection with a code of 4000 or above, which forbids reconnecting. `connect()` tries again.
    case ended(reason: String)
}

/// The socket's actual events, without grace windows: for logs, and for code that retries something.
public enum SocketEvent: Sendable, Equatable {
    case connecting
    case connected
    /// The hub answered an attempt with this HTTP status; ``lost(reason:)`` follows. 401 means that it does not accept
    /// the token.
    case refused(status: Int)
    /// The connection was lost, or an attempt failed. The reason is one sentence.
    case lost(reason: String)
    /// The next attempt is made after this time.
    case waiting(Duration)
}

/// The connection's state for the UI: losses shorter than the grace window of the app's state leave no trace. Pure; a
/// part of `ConnectionMachine`.
package struct DisplayedState {
    package private(set) var state = ConnectionState.idle
    private let windows: GraceWindows
    private var appState: AppState
    /// The start of a loss that is not shown yet.
    private var lostAt: Moment?
    private var reason = ""

    package init(_ windows: GraceWindows, _ appState: AppState) {
        self.windows = windows
        self.appState = appState
    }

    /// The time at which `showOverdueLoss` shows a loss; nil if there is none to show.
    package var nextDeadline: Moment? { lostAt.map { $0 + windows[appState] } }

    /// The first attempt begins.
    package mutating func attemptBegan(at now: Moment) {
        state = .connecting
        lostAt = now
        reason = "There is no answer from the hub."
    }

    /// The connection is open.
    package mutating func connectionOpened() {
        state = .connected
        lostAt = nil
    }

    /// The connection was lost, or an attempt failed. The last reason will be shown; the window counts from the first.
    package mutating func connectionLost(at now: Moment, _ reason: String) {
        self.reason = reason
        switch state {
        case .connected, .connecting: lostAt = lostAt ?? now
        case .disconnected: state = .disconnected(reason: reason)
        case .idle, .ended: break
        }
    }

    /// No connection is wanted: the state is shown at once.
    package mutating func showFinal(_ state: ConnectionState) {
        self.state = state
        lostAt = nil
    }

    /// The app's state has changed. An app that returns to the foreground gets the whole window: a loss that was not
    /// visible is not shown to a user who has only just looked.
    package mutating func changeAppState(to appState: AppState, at now: Moment) {
        if appState == .active, self.appState != .active, lostAt != nil { lostAt = now }
        self.appState = appState
    }

    /// Shows a loss whose window is over.
    package mutating func showOverdueLoss(_ now: Moment) {
        guard let deadline = nextDeadline, deadline <= now else { return }
        lostAt = nil
        state = .disconnected(reason: reason)
    }
}
