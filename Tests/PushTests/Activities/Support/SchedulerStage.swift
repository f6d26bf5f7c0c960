import Hub
import Push
import Testing
import Wire

/// A scheduler on a manual clock, and an owner that writes every timestamp down at once.
final class SchedulerStage {
    static let template = """
        {"name":"{conversation_name}","last":"{sender_name}: {preview}","unread":"{unread}","typing":"{typing}",\
        "online":"{online}","connected":"{connected}","version":"{version}","at":"{updated_at}"}
        """
    /// What no test is about: one second past the hour, so that seconds and milliseconds are not mistaken for each
    /// other.
    static let start = HubTime(monotonic: 5_000, unix: 1_800_000_001_000)

    var scheduler: ActivityScheduler
    var now = start

    init(_ adjust: (inout ActivityRules) -> Void = { _ in }) throws {
        var rules = ActivityRules(content: try ContentTemplate(Self.template))
        adjust(&rules)
        scheduler = ActivityScheduler(rules)
    }

    var seconds: Int64 { now.unix / 1000 }

    static func token(_ number: Int) throws -> PushToken {
        try #require(PushToken(String(repeating: "0", count: 56) + String(10_000_000 + number)))
    }

    static func registration(
        _ id: Name = "a", token number: Int = 1, conversation: Name? = "c", timestamp: Int64 = 0, version: Int = 0,
        state: String? = nil, startedAt: Int64 = start.unix, wasDelivered: Bool = false
    ) throws -> ActivityRegistration {
        let destination = PushDestination(token: try token(number), environment: .sandbox, bundle: "app")
        return ActivityRegistration(
            id: id, user: Name("u-\(id)"), session: nil, destination: destination, conversation: conversation,
            registeredAt: startedAt, startedAt: startedAt, timestamp: timestamp, version: version,
            state: state.map { Array($0.utf8) }, wasDelivered: wasDelivered)
    }

    static func json(_ text: String) throws -> JSON { try JSON(parsing: Array(text.utf8)) }

    /// One activity whose facts are known, and whose first state has been sent.
    static func settled(_ status: ConnectionStatus, _ adjust: (inout ActivityRules) -> Void = { _ in }) throws
        -> SchedulerStage
    {
        let stage = try SchedulerStage(adjust)
        stage.put(
            try registration(), status: status, facts: ConversationFacts(name: "Team"), wasDelivered: true,
            isPosted: false)
        stage.run(for: 20_000)
        return stage
    }

    func wait(_ milliseconds: Int64) { now = now.advanced(by: milliseconds) }

    func advance() -> [ActivityAction] { scheduler.advance(to: now) }

    /// What is due, timestamps written down and every push answered with `outcome`.
    @discardableResult
    func deliver(_ outcome: ActivityPush.Outcome = .delivered) -> [ActivityPush] {
        advance().compactMap { action in
            guard case .stamp(let request) = action else { return nil }
            let sent = scheduler.stamped(request.id, timestamp: request.timestamp, at: now)
            if let sent { scheduler.sent(sent.id, timestamp: sent.timestamp, outcome, at: now) }
            return sent
        }
    }

    /// Goes from one due time to the next, and delivers what there is.
    @discardableResult
    func run(for milliseconds: Int64) -> [(at: Int64, request: ActivityPush)] {
        let end = now.monotonic + milliseconds
        var all: [(Int64, ActivityPush)] = []
        while let due = scheduler.nextDue, due <= end {
            wait(max(0, due - now.monotonic))
            all += deliver().map { (now.monotonic, $0) }
        }
        wait(end - now.monotonic)
        return all
    }

    /// The one push that is due, its timestamp written down, and not answered yet.
    func launch(_ location: SourceLocation = #_sourceLocation) throws -> ActivityPush {
        let actions = advance()
        guard case .stamp(let request)? = actions.first else { throw Missing(location: location) }
        let sent = stamped(Name(request.id.text), timestamp: request.timestamp)
        return try #require(sent, sourceLocation: location)
    }

    struct Missing: Error { let location: SourceLocation }
}

/// The scheduler's own functions, now.
extension SchedulerStage {
    func put(
        _ registration: ActivityRegistration, status: ConnectionStatus, facts: ConversationFacts? = nil,
        wasDelivered: Bool = false, isPosted: Bool = false
    ) {
        scheduler.put(
            registration, status: status, facts: facts, wasDelivered: wasDelivered, isPosted: isPosted, at: now)
    }

    @discardableResult func remove(_ id: Name) -> Bool { scheduler.remove(id) }
    @discardableResult func set(_ status: ConnectionStatus, of id: Name) -> Bool {
        scheduler.set(status, of: id, at: now)
    }
    @discardableResult func set(_ facts: ConversationFacts, of id: Name) -> Bool {
        scheduler.set(facts, of: id, at: now)
    }
    @discardableResult func leave(_ id: Name) -> Bool { scheduler.leave(id, at: now) }
    @discardableResult func showAgain(_ id: Name) -> Bool { scheduler.showAgain(id, at: now) }

    @discardableResult
    func change(_ id: Name, _ body: (inout ConversationFacts) -> Void) -> Bool { scheduler.change(id, at: now, body) }

    func post(_ post: ActivityPost, to id: Name) -> PostVerdict { scheduler.post(post, to: id, at: now) }

    func stamped(_ id: Name, timestamp: Int64) -> ActivityPush? {
        scheduler.stamped(id, timestamp: timestamp, at: now)
    }
    func unstamped(_ id: Name, timestamp: Int64) { scheduler.unstamped(id, timestamp: timestamp, at: now) }

    func refused(_ id: Name, timestamp: Int64, current: ActivityRegistration) {
        scheduler.refused(id, timestamp: timestamp, current: current, at: now)
    }

    @discardableResult
    func sent(_ id: Name, timestamp: Int64, _ outcome: ActivityPush.Outcome) -> Bool {
        scheduler.sent(id, timestamp: timestamp, outcome, at: now)
    }
}

extension ActivityPush {
    /// What the push says, as the phone would decode it.
    var content: JSON? { stamp.state.flatMap { JSON(trusted: $0[...]) } }
}
