import Hub
import Push
import Testing
import Wire

/// Random facts, standings, posts, tokens, outcomes, restarts and another hub, against a model of what is true.
@Suite struct ActivityModelTests {
    @Test(arguments: 0..<8) func keepsItsPromises(_ seed: Int) throws {
        var world = try ActivityWorld(seed: UInt64(seed))
        for _ in 0..<1_500 { try world.step() }
        let seen = world.seen
        try world.settle()
        for (what, least) in [
            "pushed": 100, "shown": 100, "alert pushed": 1, "end pushed": 5, "ended": 5, "withdrawn": 1, "refused": 1,
            "stale": 5, "withheld": 5, "queued": 5, "unanswered": 10, "rotated": 10, "restarted": 1,
        ] {
            #expect(seen[what, default: 0] >= least, "\(what): \(seen)")
        }
    }
}

/// What is true of one activity, kept apart from the scheduler: what its summary should say, what its phone shows, what the
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
    var status: ConnectionStatus
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
        _ registration: ActivityRegistration, status: ConnectionStatus, facts: ConversationFacts, isPosted: Bool,
        at now: HubTime,
        lifetime: Int64
    ) {
        self.registration = registration
        self.status = status
        self.facts = facts
        timestamp = registration.timestamp
        version = registration.version
        floor = registration.timestamp
        endsAt = now.monotonic + registration.startedAt + lifetime - now.unix
        if isPosted, let state = registration.state {
            posted = Post(state: String(decoding: state, as: UTF8.self), at: registration.timestamp)
        }
    }

    var isAway: Bool { status == .away }

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
