import Hub
import Wire

/// One Live Activity in the scheduler: its known facts, the states sent to its phone, and those waiting to be sent.
struct LiveActivity: Sendable {
    /// A state that went out, by push or by socket.
    struct SentState: Sendable {
        let event: ActivityEvent
        /// Seconds since 1970.
        let timestamp: Int64
        let version: Int
        let state: JSON
    }

    /// A state that a backend posted.
    struct Posted: Sendable {
        let content: PostedState
        /// The post's own timestamp, in seconds since 1970; nil if it has none.
        let timestamp: Int64?
        /// The same, or the time when the post arrived, in seconds since 1970.
        let at: Int64

        init(_ content: PostedState, timestamp: Int64? = nil, at: Int64) {
            self.content = content
            self.timestamp = timestamp
            self.at = at
        }

        /// Restores what was posted before a restart, or to another hub.
        init?(_ registration: ActivityRegistration) {
            let written = registration.post.flatMap { PostedState(stored: $0) }
            guard let content = written ?? registration.state.map({ PostedState(JSON(trusted: $0[...])) }) else {
                return nil
            }
            self.init(content, at: registration.timestamp)
        }
    }

    /// The reason for an activity's end.
    enum Ending: Sendable {
        /// Its life is over, or its user has left the conversation.
        case byHub
        /// A backend ended it. `dismissal`: the time when it leaves the lock screen, in seconds since 1970.
        case posted(dismissal: Int64?)
    }

    /// A push on its way: its stamp is stored first, then it is sent.
    struct InFlight: Sendable {
        var push: ActivityPush
        let alert: ActivityAlert?
        let wasForced: Bool
        /// Whether the stamp is stored.
        var isSending = false
    }

    let id: Name
    /// The claim `sub` of the user who registered the activity.
    private(set) var user: Name
    /// The claim `session_id`, if the token had one.
    private(set) var session: Name?
    private(set) var conversation: Name?
    var destination: PushDestination
    /// The time when the token was last registered, in milliseconds since 1970.
    var registeredAt: Int64
    /// The time when the activity was first registered, in milliseconds since 1970.
    let startedAt: Int64
    /// The time when the hub ends the activity, in monotonic milliseconds.
    let endsAt: Int64
    /// The time when the hub forgets the activity even if it could not be ended, in monotonic milliseconds.
    let forgetAt: Int64

    var status: ConnectionStatus
    /// Nil until the facts are known: nothing is sent then, because an empty summary would be a wrong one.
    var facts: ConversationFacts?
    /// Once a backend has posted, the facts are sent only in the members left to the hub.
    var posted: Posted?
    /// The alert that goes with the next push.
    var alert: ActivityAlert?
    /// Nil until the activity is to end.
    var ending: Ending?

    /// The last timestamp used, by push or by socket, in seconds since 1970.
    var timestamp: Int64
    /// The number of states sent.
    var version: Int
    /// A post has to be newer than this, in seconds since 1970.
    var floor: Int64
    /// The state that the phone is known to have by push. Nil if that is unknown, or if the socket has since shown another one.
    var pushed: SentState?
    /// The last state shown by socket.
    var shown: SentState?
    /// The last state sent: the content of an end if the facts are not known.
    var lastState: JSON?

    /// The change that waits to be sent; nil if nothing waits.
    var debounce: Debounce?
    /// Whether the next push is sent even if the phone already has that state.
    var isForced = false
    /// Whether the state is shown by socket even if the app was already shown it.
    var showsAgain = false
    var inFlight: InFlight?
    /// In monotonic milliseconds, as the next.
    var lastPushAt: Int64?
    /// No push goes before this time.
    var retryAt: Int64?
    /// The number of failed pushes in a row.
    var attempts = 0
    /// The time when the activity ended, in monotonic milliseconds; nil while it has not.
    var overSince: Int64?

    init(
        _ registration: ActivityRegistration, status: ConnectionStatus, facts: ConversationFacts?, wasDelivered: Bool,
        isPosted: Bool, at now: HubTime, _ rules: ActivityRules
    ) {
        id = registration.id
        user = registration.user
        session = registration.session
        conversation = registration.conversation
        destination = registration.destination
        registeredAt = registration.registeredAt
        startedAt = registration.startedAt
        endsAt = now.monotonic + registration.startedAt + rules.lifetime - now.unix
        forgetAt = endsAt + rules.afterlife
        self.status = status
        self.facts = facts
        timestamp = registration.timestamp
        version = registration.version
        floor = registration.timestamp
        let state = registration.state.map { JSON(trusted: $0[...]) }
        lastState = state
        if isPosted { keep(posted: Posted(registration)) }
        if let state, wasDelivered {
            pushed = SentState(
                event: .update, timestamp: registration.timestamp, version: registration.version, state: state)
        }
        showsAgain = status == .live
        debounce = Debounce(at: now.monotonic, isUrgent: showsAgain)
    }

    /// Keeps a state that a backend posted. The members that the hub fills are sent even if no conversation is known.
    private mutating func keep(posted: Posted?) {
        guard let posted else { return }
        self.posted = posted
        if facts == nil, posted.content.hasVariables { facts = ConversationFacts() }
    }

    var isAway: Bool { status == .away }
    var isOver: Bool { overSince != nil }

    /// Takes another registration of the activity, perhaps with a new token, or after another hub had it.
    mutating func put(
        _ registration: ActivityRegistration, status: ConnectionStatus, facts: ConversationFacts?, at now: HubTime
    ) {
        user = registration.user
        session = registration.session
        conversation = registration.conversation
        registeredAt = registration.registeredAt
        if registration.timestamp > timestamp { adopt(registration, at: now) }
        if registration.destination != destination { moveTo(registration.destination, at: now) }
        if let facts { set(facts, at: now) }
        set(status, at: now)
    }

    /// Switches to the phone's new token, which has received nothing yet.
    private mutating func moveTo(_ other: PushDestination, at now: HubTime) {
        destination = other
        pushAgain(at: now)
    }

    mutating func pushAgain(at now: HubTime) {
        retryAt = nil
        attempts = 0
        guard isAway else { return }
        isForced = true
        mark(at: now, isUrgent: true)
    }

    /// Takes over what another hub has sent since.
    mutating func adopt(_ current: ActivityRegistration, at now: HubTime) {
        timestamp = max(timestamp, current.timestamp)
        version = max(version, current.version)
        floor = max(floor, current.timestamp)
        guard let bytes = current.state else { return }
        let state = JSON(trusted: bytes[...])
        lastState = state
        let sent = SentState(event: .update, timestamp: current.timestamp, version: current.version, state: state)
        arrived(current.wasDelivered ? sent : nil)
        if current.isPosted, posted?.at ?? .min <= current.timestamp {
            keep(posted: Posted(current))
        }
        if !isAway {
            // The other hub's push may have replaced what was shown.
            showsAgain = status == .live
            shown = nil
        }
        mark(at: now, isUrgent: true)
    }

    /// Notes that a push has reached the phone. The phone shows it, unless the socket has shown something newer.
    mutating func arrived(_ sent: SentState?) {
        pushed = sent.flatMap { $0.timestamp > shown?.timestamp ?? .min ? $0 : nil }
    }

    // MARK: Changes

    /// Marks a change that the phone is to be sent, now or once it has settled.
    mutating func mark(at now: HubTime, isUrgent: Bool = false) {
        if debounce == nil {
            debounce = Debounce(at: now.monotonic, isUrgent: isUrgent)
        } else {
            debounce?.note(at: now.monotonic, isUrgent: isUrgent)
        }
    }

    mutating func set(_ facts: ConversationFacts, at now: HubTime) {
        // An activity that is over is sent nothing more: its user may no longer see the facts.
        guard ending == nil, self.facts != facts else { return }
        self.facts = facts
        if posted?.content.hasVariables ?? true { mark(at: now) }
    }

    mutating func set(_ new: ConnectionStatus, at now: HubTime) {
        let old = status
        status = new
        switch new {
        case .live where old != .live:
            // The socket shows what was lost in the window, and what waited to be pushed.
            isForced = false
            alert = nil
            retryAt = nil
            attempts = 0
            showsAgain = true
            mark(at: now, isUrgent: true)
        case .away where old != .away:
            // An app that knows its connection may have shown the change by itself.
            isForced = posted?.content.variables.contains("connected") ?? true
            showsAgain = false
            mark(at: now, isUrgent: true)
        default: break
        }
    }

    /// Ends the activity with the next state that goes out.
    mutating func end(_ how: Ending, at now: HubTime) {
        guard ending == nil else { return }
        ending = how
        mark(at: now, isUrgent: true)
    }

    /// Takes a state posted by a backend.
    mutating func post(_ post: ActivityPost, at now: HubTime) -> PostVerdict {
        let arrival = max(now.unix / 1000, floor + 1)
        guard ending == nil, !isOver, post.timestamp ?? arrival > floor else { return .stale }
        floor = post.timestamp ?? arrival
        keep(posted: Posted(post.content, timestamp: post.timestamp, at: floor))
        // A waiting alert goes with the state that replaces its own.
        alert = status == .live ? nil : post.alert ?? alert
        if post.event == .end { end(.posted(dismissal: post.dismissal), at: now) }
        mark(at: now, isUrgent: post.alert != nil)
        return isAway ? .queued : .withheld
    }
}

/// The debounce of a change: it goes out once nothing has changed for a while, at the latest a while after the first change, and at
/// once if it is urgent. Times are in monotonic milliseconds.
struct Debounce: Equatable {
    private var first: Int64
    private var last: Int64
    private(set) var isUrgent: Bool

    init(at time: Int64, isUrgent: Bool) {
        (first, last) = (time, time)
        self.isUrgent = isUrgent
    }

    mutating func note(at time: Int64, isUrgent: Bool) {
        last = max(last, time)
        self.isUrgent = self.isUrgent || isUrgent
    }

    func due(_ rules: ActivityRules) -> Int64 { isUrgent ? first : min(last + rules.quiet, first + rules.ceiling) }
}
