import Hub
import Push
import Wire

/// What is true of one activity, kept apart from the book: what its summary should say, what its phone shows, what the
/// database has.
struct ActivityModel {
    struct Post {
        let state: String
        let at: Int64
    }

    /// What a phone shows: of all that reached it, the newest.
    struct Phone {
        var timestamp: Int64 = .min
        var state: JSON?
        var hasEnded = false
    }

    var registration: ActivityRegistration
    var standing: Standing
    var facts: ConversationFacts
    var posted: Post?
    var isEnding = false
    /// In monotonic milliseconds.
    let endsAt: Int64

    var phone = Phone()
    /// The last timestamp that was used, and the last version that went out.
    var timestamp: Int64
    var version: Int
    /// A post has to be newer.
    var floor: Int64
    var isInFlight = false
    var lastSend: Int64?
    /// Since when the phone is owed something, in monotonic milliseconds.
    var owedSince: Int64?
    var patience: Int64 = 10_000
    var wasGivenUp = false

    init(
        _ registration: ActivityRegistration, standing: Standing, facts: ConversationFacts, isPosted: Bool,
        at now: HubTime,
        lifetime: Int64
    ) {
        self.registration = registration
        self.standing = standing
        self.facts = facts
        timestamp = registration.timestamp
        version = registration.version
        floor = registration.timestamp
        endsAt = now.monotonic + registration.startedAt + lifetime - now.unix
        if isPosted, let state = registration.state {
            posted = Post(state: String(decoding: state, as: UTF8.self), at: registration.timestamp)
        }
    }

    var isAway: Bool { standing == .away }

    /// Whether a content-state says what is true.
    func isTold(by state: JSON?) -> Bool {
        guard let state else { return false }
        if let posted { return state.description == posted.state }
        func texts(_ key: String) -> [String] { state[key]?.elements.map { $0.string ?? "?" } ?? ["?"] }
        let last = "\(facts.lastMessage?.senderName ?? ""): \(facts.lastMessage?.text ?? "")"
        return state["name"]?.string == facts.name && state["last"]?.string == last
            && state["unread"]?.int == facts.unread && texts("typing") == facts.typing.sorted()
            && texts("online") == facts.online.sorted() && state["connected"]?.bool == !isAway
    }

    mutating func reachPhone(_ timestamp: Int64, _ event: ActivityEvent, _ state: [UInt8]?) {
        guard timestamp > phone.timestamp else { return }
        let kept = phone.state
        phone = Phone(
            timestamp: timestamp, state: state.map { JSON(trusted: $0[...]) } ?? kept, hasEnded: event == .end)
    }

    /// The row in the database.
    mutating func write(
        _ timestamp: Int64, _ version: Int, _ state: [UInt8]?, isPosted: Bool, wasDelivered: Bool = false
    ) {
        registration = ActivityRegistration(
            id: registration.id, user: registration.user, session: registration.session,
            destination: registration.destination, conversation: registration.conversation,
            registeredAt: registration.registeredAt, startedAt: registration.startedAt, timestamp: timestamp,
            version: version, state: state, isPosted: isPosted, wasDelivered: wasDelivered)
    }

    mutating func move(to destination: PushDestination) {
        registration = ActivityRegistration(
            id: registration.id, user: registration.user, session: registration.session, destination: destination,
            conversation: registration.conversation, registeredAt: registration.registeredAt,
            startedAt: registration.startedAt, timestamp: registration.timestamp, version: registration.version,
            state: registration.state, isPosted: registration.isPosted, wasDelivered: registration.wasDelivered)
    }
}
