/// A time in the state machines: the duration since some start, on a clock that continues while the device sleeps.
package typealias Moment = Duration

/// The time and the randomness for one input to the state machines, which have none of their own.
package struct Instant {
    package let now: Moment
    /// The wall clock, in seconds since 1970. Used only for the lifetime of tokens.
    package let unix: Double
    /// A random number in 0..<1, for backoff.
    package let random: Double

    package init(now: Moment, unix: Double, random: Double) {
        self.now = now
        self.unix = unix
        self.random = random
    }
}

/// An action that `ConnectionMachine` requests from `Engine` or, if it concerns channels, from `ClientMachine`.
package enum ConnectionAction: Equatable {
    /// Call the app's token callback for the request with this number; its answer goes to `ConnectionMachine`.
    case ask(Int)
    /// The answer to this request is not needed any more.
    case cancelAsk(Int)
    /// Open the socket with this number, using this token.
    case open(Int, token: String)
    /// Close the socket with this number, or abort the attempt to open it.
    case close(Int)
    case sendHeartbeat
    /// The socket is open: channels may join.
    case up
    /// The socket is gone, for this reason (one sentence).
    case down(reason: String)
    /// The token for the channels.
    case token(String)
    /// The state to show in the UI.
    case show(ConnectionState)
    case event(SocketEvent)
}

/// The logic of the connection: when to connect, when to request a token, when to give up on a silent hub, and what a
/// UI shows.
///
/// Pure: it has no clock, no randomness and no I/O. Inputs are methods, `takeActions` returns the actions, and `handleDeadlines`
/// has to be called at `nextDeadline`.
package struct ConnectionMachine {
    package enum Phase: Equatable {
        /// No connection is wanted.
        case idle
        /// A token was requested from the app.
        case asking
        /// A socket is being opened; at the deadline the attempt is given up.
        case opening(deadline: Moment)
        case open(since: Moment)
        /// The next attempt is at `until`.
        case waiting(until: Moment)
    }

    package private(set) var phase = Phase.idle
    package private(set) var actions: [ConnectionAction] = []
    /// The number of the latest socket. Events of others are ignored.
    package private(set) var socket = 0
    package private(set) var tokens: TokenRefresher
    package private(set) var shown: DisplayedState
    private let timing: Timing
    private var backoff: Backoff
    private var heartbeatAt: Moment?
    /// The deadline for a sign of life from the hub; nil while none is expected.
    private var answerBy: Moment?

    /// The connection's time limits.
    package struct Timing {
        package var heartbeat: Duration = .seconds(25)
        package var heartbeatTimeout: Duration = .seconds(10)
        package var connectTimeout: Duration = .seconds(10)
        package var tokenTimeout: Duration = .seconds(30)
        /// The time limit for a sign of life on an open socket after the app reported that the network is back.
        package var probeTimeout: Duration = .seconds(4)
        package var backoff = Backoff.Policy()
        package var grace = GraceWindows()

        package init() {}
    }

    package init(_ timing: Timing, _ appState: AppState) {
        self.timing = timing
        backoff = Backoff(timing.backoff)
        tokens = TokenRefresher(timing.backoff, timeout: timing.tokenTimeout)
        shown = DisplayedState(timing.grace, appState)
    }

    /// The actions since the last call, in order.
    package mutating func takeActions() -> [ConnectionAction] {
        defer { actions = [] }
        return actions
    }

    package var isOpen: Bool { if case .open = phase { true } else { false } }

    /// The next time at which `handleDeadlines` has work; nil if only another input can change anything.
    package var nextDeadline: Moment? {
        var deadlines = [shown.nextDeadline, tokens.nextDeadline]
        switch phase {
        case .idle, .asking: break
        case .opening(let deadline): deadlines.append(deadline)
        case .waiting(let until): deadlines.append(until)
        case .open: deadlines += [heartbeatAt, answerBy]
        }
        return deadlines.compactMap(\.self).min()
    }

    // MARK: Orders of the app

    /// Connects, unless there is a connection or one is being opened.
    package mutating func connect(_ at: Instant) {
        guard phase == .idle else { return }
        backoff.reset()
        updateShown { $0.attemptBegan(at: at.now) }
        startAttempt(at)
    }

    /// Closes the connection and stays without one.
    package mutating func closeConnection(_ state: ConnectionState = .idle) {
        let wasOpen = isOpen
        if case .opening = phase { actions.append(.close(socket)) }
        if wasOpen { actions.append(.close(socket)) }
        if let asking = tokens.asking { actions.append(.cancelAsk(asking)) }
        tokens = TokenRefresher(timing.backoff, timeout: timing.tokenTimeout)
        phase = .idle
        if wasOpen { actions.append(.down(reason: "The app closed the connection.")) }
        updateShown { $0.showFinal(state) }
    }

    /// The app reports that the network is back: nothing waits any longer, and a socket that looks alive has to prove
    /// it.
    package mutating func networkIsBack(_ at: Instant) {
        backoff.reset()
        switch phase {
        case .waiting: startAttempt(at)
        case .opening:
            // It was started on a network that is gone, and may wait for a reply that cannot come.
            actions.append(.close(socket))
            startAttempt(at)
        case .open:
            let deadline = at.now + timing.probeTimeout
            if answerBy == nil { actions.append(.sendHeartbeat) }
            answerBy = min(answerBy ?? deadline, deadline)
        case .idle, .asking: break
        }
    }

    /// The app's state has changed. In the foreground the next attempt is made at once.
    package mutating func changeAppState(to appState: AppState, _ at: Instant) {
        updateShown { $0.changeAppState(to: appState, at: at.now) }
        if appState == .active, case .waiting = phase { startAttempt(at) }
    }

    // MARK: Tokens

    /// The result of the app's token callback; nil and a sentence if it failed.
    package mutating func tokenArrived(_ id: Int, _ token: String?, failure: String = "", _ at: Instant) {
        guard tokens.asking == id else { return }
        let answer = tokens.answerReceived(id, token, at: at.now, unix: at.unix, at.random)
        guard phase == .asking else {
            if isOpen, case .new(let token) = answer { actions.append(.token(token)) }
            return
        }
        switch answer {
        case .new(let token):
            actions.append(.token(token))
            openSocket(token, at)
        case .same(let token): openSocket(token, at)
        case .none: connectionLost("The app has no token: \(failure)", at)
        }
    }

    /// The hub does not accept the token, or no longer does.
    package mutating func tokenRefused(_ at: Instant) {
        tokens.tokenRefused(at: at.now, at.random)
    }

    // MARK: The socket

    /// The socket with this number is open.
    package mutating func socketOpened(_ id: Int, _ at: Instant) {
        guard id == socket, case .opening = phase else { return }
        phase = .open(since: at.now)
        heartbeatAt = at.now + timing.heartbeat
        answerBy = nil
        actions.append(.event(.connected))
        actions.append(.up)
        updateShown { $0.connectionOpened() }
    }

    /// The attempt to open the socket with this number failed, or the socket ended.
    package mutating func socketEnded(_ id: Int, _ failure: TransportFailure, _ at: Instant) {
        guard id == socket else { return }
        switch phase {
        case .idle, .asking, .waiting: return
        case .opening, .open: break
        }
        if case .refused(let status) = failure { actions.append(.event(.refused(status: status))) }
        if failure.isFinal {
            let wasOpen = isOpen
            phase = .idle
            tokens.cancelRequest()
            actions.append(.event(.lost(reason: failure.reason)))
            if wasOpen { actions.append(.down(reason: failure.reason)) }
            return updateShown { $0.showFinal(.ended(reason: failure.reason)) }
        }
        connectionLost(failure.reason, at)
    }

    /// A frame arrived: any frame shows that the hub is alive.
    package mutating func frameReceived(_ at: Instant) {
        guard isOpen else { return }
        answerBy = nil
    }

    /// Handles what is due.
    package mutating func handleDeadlines(_ at: Instant) {
        updateShown { $0.showOverdueLoss(at.now) }
        switch tokens.handleDeadlines(at.now, at.random) {
        case .ask: requestToken(at)
        case .giveUp(let id):
            actions.append(.cancelAsk(id))
            if phase == .asking { connectionLost("The app's token callback does not come to an end.", at) }
        case nil: break
        }
        switch phase {
        case .waiting(let until) where until <= at.now: startAttempt(at)
        case .opening(let deadline) where deadline <= at.now:
            actions.append(.close(socket))
            connectionLost("The hub does not answer.", at)
        case .open: checkHeartbeat(at)
        default: break
        }
    }

    private mutating func checkHeartbeat(_ at: Instant) {
        if let answerBy, answerBy <= at.now {
            actions.append(.close(socket))
            return connectionLost("The hub is silent.", at)
        }
        guard let heartbeatAt, heartbeatAt <= at.now else { return }
        self.heartbeatAt = at.now + timing.heartbeat
        actions.append(.sendHeartbeat)
        if answerBy == nil { answerBy = at.now + timing.heartbeatTimeout }
    }

    // MARK: Steps

    private mutating func startAttempt(_ at: Instant) {
        phase = .asking
        actions.append(.event(.connecting))
        requestToken(at)
    }

    private mutating func requestToken(_ at: Instant) {
        let question = tokens.requestToken(at: at.now)
        if question.isNew { actions.append(.ask(question.id)) }
    }

    private mutating func openSocket(_ token: String, _ at: Instant) {
        socket += 1
        phase = .opening(deadline: at.now + timing.connectTimeout)
        actions.append(.open(socket, token: token))
    }

    private mutating func connectionLost(_ reason: String, _ at: Instant) {
        if case .open(let since) = phase {
            backoff.connectionEnded(after: at.now - since)
            actions.append(.down(reason: reason))
        }
        heartbeatAt = nil
        answerBy = nil
        tokens.cancelRequest()
        let wait = backoff.nextPause(at.random)
        phase = .waiting(until: at.now + wait)
        actions.append(.event(.lost(reason: reason)))
        actions.append(.event(.waiting(wait)))
        updateShown { $0.connectionLost(at: at.now, reason) }
    }

    private mutating func updateShown(_ change: (inout DisplayedState) -> Void) {
        let before = shown.state
        change(&shown)
        if shown.state != before { actions.append(.show(shown.state)) }
    }
}
