import Hub
import Wire

/// One activity in the book: what is known of it, what was told of it, and what waits.
struct ActivityEntry: Sendable {
    /// A state that went out.
    struct Told: Sendable {
        let event: ActivityEvent
        let timestamp: Int64
        let version: Int
        let state: JSON
    }

    /// What a backend posted.
    struct Posted: Sendable {
        let state: JSON
        /// The backend's own, in seconds since 1970.
        let timestamp: Int64?
        /// That, or when it arrived.
        let at: Int64

        init(state: JSON, timestamp: Int64? = nil, at: Int64) {
            self.state = state
            self.timestamp = timestamp
            self.at = at
        }
    }

    enum Ending: Sendable {
        case byHub
        case posted(dismissal: Int64?)
    }

    /// A push that is on its way: first its timestamp is written down, then it is sent.
    struct Flight: Sendable {
        var request: StampRequest
        let alert: ActivityAlert?
        let wasForced: Bool
        var isSending = false
    }

    let id: String
    private(set) var user: String
    private(set) var session: String?
    private(set) var conversation: String?
    var destination: PushDestination
    let startedAt: Int64
    /// In monotonic milliseconds.
    let endsAt: Int64
    let forgetAt: Int64

    var standing: Standing
    /// Nil until they are known: nothing is told then, because an empty summary would be a wrong one.
    var facts: ConversationFacts?
    /// Once there is one, the facts are not told any more.
    var posted: Posted?
    var alert: ActivityAlert?
    var ending: Ending?

    /// The last that was used, by push or by socket.
    var timestamp: Int64
    var version: Int
    /// A post has to be newer than that, in seconds since 1970.
    var floor: Int64
    /// What the phone is known to have by push. Nil where nobody knows, or where the socket told it something else
    /// since.
    var pushed: Told?
    var shown: Told?
    /// For an end of which the facts are not known.
    var lastState: JSON?

    var wake: Wake?
    /// The next push goes even if the phone has that state already.
    var isForced = false
    var showsAgain = false
    var flight: Flight?
    var lastPushAt: Int64?
    var retryAt: Int64?
    var attempts = 0
    /// In monotonic milliseconds.
    var overSince: Int64?

    init(
        _ registration: ActivityRegistration, standing: Standing, facts: ConversationFacts?, wasDelivered: Bool,
        isPosted: Bool, at now: HubTime, _ rules: ActivityRules
    ) {
        id = registration.id
        user = registration.user
        session = registration.session
        conversation = registration.conversation
        destination = registration.destination
        startedAt = registration.startedAt
        endsAt = now.monotonic + registration.startedAt + rules.lifetime - now.unix
        forgetAt = endsAt + rules.afterlife
        self.standing = standing
        self.facts = facts
        timestamp = registration.timestamp
        version = registration.version
        floor = registration.timestamp
        let state = registration.state.map { JSON(trusted: $0[...]) }
        lastState = state
        if let state, isPosted { posted = Posted(state: state, at: registration.timestamp) }
        if let state, wasDelivered {
            pushed = Told(
                event: .update, timestamp: registration.timestamp, version: registration.version, state: state)
        }
        showsAgain = standing == .live
        wake = Wake(at: now.monotonic, isUrgent: showsAgain)
    }

    var isAway: Bool { standing == .away }
    var isOver: Bool { overSince != nil }

    /// It was registered again: perhaps with a new token, perhaps after another hub had it.
    mutating func put(
        _ registration: ActivityRegistration, standing: Standing, facts: ConversationFacts?, at now: HubTime
    ) {
        user = registration.user
        session = registration.session
        conversation = registration.conversation
        if registration.timestamp > timestamp { adopt(registration, at: now) }
        if registration.destination != destination { moveTo(registration.destination, at: now) }
        if let facts { set(facts, at: now) }
        set(standing, at: now)
    }

    private mutating func moveTo(_ other: PushDestination, at now: HubTime) {
        destination = other
        retryAt = nil
        attempts = 0
        guard isAway else { return }
        isForced = true
        mark(at: now, isUrgent: true)
    }

    /// Another hub has sent since.
    mutating func adopt(_ current: ActivityRegistration, at now: HubTime) {
        timestamp = max(timestamp, current.timestamp)
        version = max(version, current.version)
        floor = max(floor, current.timestamp)
        guard let bytes = current.state else { return }
        let state = JSON(trusted: bytes[...])
        lastState = state
        let told = Told(event: .update, timestamp: current.timestamp, version: current.version, state: state)
        arrived(current.wasDelivered ? told : nil)
        if current.isPosted, posted?.at ?? .min <= current.timestamp {
            posted = Posted(state: state, at: current.timestamp)
        }
        if !isAway {
            // Its push may have come over what was shown.
            showsAgain = standing == .live
            shown = nil
        }
        mark(at: now, isUrgent: true)
    }

    /// The phone has got a push; it shows that, unless the socket has told it something newer.
    mutating func arrived(_ told: Told?) {
        pushed = told.flatMap { $0.timestamp > shown?.timestamp ?? .min ? $0 : nil }
    }

    // MARK: What changes

    mutating func mark(at now: HubTime, isUrgent: Bool = false) {
        if wake == nil {
            wake = Wake(at: now.monotonic, isUrgent: isUrgent)
        } else {
            wake?.note(at: now.monotonic, isUrgent: isUrgent)
        }
    }

    mutating func set(_ facts: ConversationFacts, at now: HubTime) {
        // What is over is not told of: the facts may be those that its user may not see any more.
        guard ending == nil, self.facts != facts else { return }
        self.facts = facts
        if posted == nil { mark(at: now) }
    }

    mutating func set(_ new: Standing, at now: HubTime) {
        let old = standing
        standing = new
        switch new {
        case .live where old != .live:
            // What was lost in the window, and what waited to be pushed, is shown instead.
            isForced = false
            alert = nil
            retryAt = nil
            attempts = 0
            showsAgain = true
            mark(at: now, isUrgent: true)
        case .away where old != .away:
            // An app that knows that it is connected may have said so by itself.
            isForced = posted == nil
            showsAgain = false
            mark(at: now, isUrgent: true)
        default: break
        }
    }

    mutating func end(_ how: Ending, at now: HubTime) {
        guard ending == nil else { return }
        ending = how
        mark(at: now, isUrgent: true)
    }

    mutating func post(_ post: ActivityPost, at now: HubTime) -> PostVerdict {
        let arrival = max(now.unix / 1000, floor + 1)
        guard ending == nil, !isOver, post.timestamp ?? arrival > floor else { return .stale }
        floor = post.timestamp ?? arrival
        posted = Posted(state: post.contentState, timestamp: post.timestamp, at: floor)
        // An alert that has not rung yet rings with the state that takes its place.
        alert = standing == .live ? nil : post.alert ?? alert
        if post.event == .end { end(.posted(dismissal: post.dismissal), at: now) }
        mark(at: now, isUrgent: post.alert != nil)
        return isAway ? .queued : .withheld
    }
}
