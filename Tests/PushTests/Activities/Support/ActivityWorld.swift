import Hub
import Push
import TestSupport
import Testing
import Wire

/// A scheduler among unreliable things: a database that is slow or away, another hub, Apple, phones that come and go, a
/// backend, and restarts. Everything that the scheduler promises is checked at every step.
struct ActivityWorld {
    /// A step of a push that is under way.
    struct PendingStep {
        let request: ActivityPush
        let isSending: Bool
        let at: Int64
    }

    struct Broken: Error, CustomStringConvertible { let description: String }

    var dice: ActivityDice
    var scheduler: ActivityScheduler
    let rules: ActivityRules
    var now = SchedulerStage.start
    var models: [Name: ActivityModel] = [:]
    var pending: [PendingStep] = []
    var births = 0
    /// Nothing fails any more.
    var isCalm = false
    /// What the test wants to have seen happen.
    var seen: [String: Int] = [:]

    init(seed: UInt64) throws {
        dice = ActivityDice(seed: seed)
        rules = ActivityRules(content: try ContentTemplate(SchedulerStage.template))
        scheduler = ActivityScheduler(rules)
        for _ in 0..<4 { try bear() }
    }

    mutating func count(_ what: String) { seen[what, default: 0] += 1 }

    func demand(_ condition: Bool, _ id: Name, _ what: @autoclosure () -> String) throws {
        if !condition { throw Broken(description: "\(id) at \(now.monotonic): \(what())") }
    }

    func model(_ id: Name) throws -> ActivityModel {
        guard let model = models[id] else { throw Broken(description: "\(id) is unknown, and was told of") }
        return model
    }

    // MARK: What happens

    mutating func step() throws {
        let id = dice.pick(models.keys.sorted())
        switch dice.below(24) {
        case 0...8: change(id)
        case 9...14: try post(to: id)
        case 15...19: stand(id)
        case 20: try rotate(id)
        case 21 where dice.below(4) == 0:
            scheduler.leave(id, at: now)
            models[id]?.isEnding = true
        case 22 where dice.below(20) == 0: try restart()
        case 23 where dice.below(10) == 0:
            try demand(scheduler.remove(id), id, "it was not in the scheduler")
            models[id] = nil
        default: break
        }
        while models.count < 4 { try bear() }
        try check()
        try pass(dice.pick([0, 10, 300, 900, 1_500, 4_000, 15_000]))
    }

    mutating func bear() throws {
        births += 1
        let id = "a\(births)"
        // Some have not long to live.
        let age = dice.below(3) == 0 ? rules.lifetime - 300_000 : 0
        let registration = try SchedulerStage.registration(
            Name(id), token: births, conversation: Name("c-\(id)"), startedAt: now.unix - age)
        let facts = ConversationFacts(name: id)
        let status = dice.pick([ConnectionStatus.live, .away])
        models[Name(id)] = ActivityModel(
            registration, status: status, facts: facts, isPosted: false, at: now, lifetime: rules.lifetime)
        scheduler.put(registration, status: status, facts: facts, wasDelivered: true, isPosted: false, at: now)
    }

    mutating func change(_ id: Name) {
        let (kind, number) = (dice.below(4), dice.below(3))
        let body: (inout ConversationFacts) -> Void = { facts in
            switch kind {
            case 0: facts.unread = number
            case 1: facts.typing = number == 0 ? [] : ["Zoe", "Ann"].suffix(number)
            case 2: facts.online = number == 0 ? [] : ["2", "1"].suffix(number)
            default: facts.lastMessage = .init(text: "t\(number)", senderID: "s", senderName: "S", at: 1)
            }
        }
        scheduler.change(id, at: now, body)
        if models[id]?.isEnding == false, let facts = models[id]?.facts {
            var changed = facts
            body(&changed)
            models[id]?.facts = changed
        }
    }

    mutating func post(to id: Name) throws {
        let model = try model(id)
        // Most stay with the template.
        guard model.posted != nil || dice.below(10) == 0 else { return change(id) }
        let seconds = now.unix / 1000
        let timestamp = dice.below(3) == 0 ? nil : seconds - 4 + Int64(dice.below(6))
        let state = #"{"of":"\#(id)","n":\#(dice.below(4))}"#
        let post = ActivityPost(
            contentState: try SchedulerStage.json(state), event: dice.below(20) == 0 ? .end : .update,
            timestamp: timestamp,
            alert: dice.below(5) == 0 ? ActivityAlert(title: "T", body: "B") : nil)
        let at = timestamp ?? max(seconds, model.floor + 1)
        let expected: PostVerdict =
            model.isEnding || at <= model.floor ? .stale : model.isAway ? .queued : .withheld
        let verdict = scheduler.post(post, to: id, at: now)
        try demand(verdict == expected, id, "a post of \(at) after \(model.floor) is \(verdict)")
        count("\(verdict)")
        guard expected != .stale else { return }
        models[id]?.floor = at
        models[id]?.posted = ActivityModel.Post(state: state, at: at)
        if post.event == .end { models[id]?.isEnding = true }
    }

    mutating func stand(_ id: Name) {
        guard let old = models[id]?.status else { return }
        let grace = ConnectionStatus.inGrace(until: now.monotonic + 12_000)
        let new: ConnectionStatus =
            switch old {
            case .live: dice.pick([grace, grace, .away])
            case .inGrace: dice.pick([.live, .away])
            case .away: .live
            }
        models[id]?.status = new
        scheduler.set(new, of: id, at: now)
    }

    mutating func rotate(_ id: Name) throws {
        births += 1
        let destination = try SchedulerStage.registration(token: births).destination
        models[id]?.move(to: destination)
        let model = try model(id)
        scheduler.put(
            model.registration, status: model.status, facts: nil, wasDelivered: dice.below(2) == 0,
            isPosted: dice.below(2) == 0, at: now)
        count("rotated")
    }

    /// The hub dies, with all that it has not written down, and is back half a minute later.
    mutating func restart() throws {
        for step in pending where step.isSending && dice.below(2) == 0 { deliver(step.request) }
        pending = []
        now = now.advanced(by: 30_000)
        scheduler = ActivityScheduler(rules)
        for (id, old) in models {
            let isPosted = old.registration.isPosted
            var model = ActivityModel(
                old.registration, status: old.status, facts: old.facts, isPosted: isPosted, at: now,
                lifetime: rules.lifetime)
            model.phone = old.phone
            models[id] = model
            scheduler.put(
                model.registration, status: model.status, facts: model.facts,
                wasDelivered: model.registration.wasDelivered, isPosted: isPosted, at: now)
        }
        count("restarted")
    }

    // MARK: Time

    mutating func pass(_ milliseconds: Int64) throws {
        let end = now.monotonic + milliseconds
        while true {
            let next = min(scheduler.nextDue ?? end, pending.map(\.at).min() ?? end)
            guard next <= end else { break }
            now = now.advanced(by: max(0, next - now.monotonic))
            for (id, model) in models where now.monotonic >= model.endsAt { models[id]?.isEnding = true }
            for action in scheduler.advance(to: now) { try perform(action) }
            try run()
            try check()
            let isDone = (scheduler.nextDue ?? .max) > now.monotonic && !pending.contains { $0.at <= now.monotonic }
            if now.monotonic >= end, isDone { return }
        }
        now = now.advanced(by: end - now.monotonic)
        try check()
    }

    mutating func perform(_ action: ActivityAction) throws {
        switch action {
        case .stamp(let request):
            let model = try model(Name(request.id.text))
            try demand(model.isAway, Name(request.id.text), "a push while its app is \(model.status)")
            try demand(!model.isInFlight, Name(request.id.text), "a second push under way")
            try use(Name(request.id.text), request.timestamp, request.stamp.version, request.event, request.stamp.state)
            models[Name(request.id.text)]?.isInFlight = true
            pending.append(PendingStep(request: request, isSending: false, at: now.monotonic + delay()))
        case .show(let shown):
            let model = try model(Name(shown.id.text))
            try demand(!model.isAway, Name(shown.id.text), "shown to nobody")
            try demand(shown.user == model.registration.user, Name(shown.id.text), "shown to \(shown.user)")
            try use(Name(shown.id.text), shown.timestamp, shown.version, shown.event, shown.state)
            // What is said into an open window is sometimes heard by another socket.
            if model.status == .live || dice.below(2) == 0 {
                models[Name(shown.id.text)]?.reachPhone(shown.timestamp, shown.event, shown.state)
            }
            let row = model.registration
            models[Name(shown.id.text)]?.write(row.timestamp, row.version, row.state, isPosted: row.isPosted)
            count("shown")
        case .ended(let id):
            let model = try model(Name(id.text))
            try demand(model.isEnding || model.phone.hasEnded, Name(id.text), "ended without a reason")
            try demand(!scheduler.contains(id), Name(id.text), "ended, and in the scheduler")
            models[Name(id.text)] = nil
            pending.removeAll { $0.request.id == id }
            count("ended")
        case .unsendable(let id, let error): throw Broken(description: "\(id): \(error)")
        }
    }

    mutating func use(
        _ id: Name, _ timestamp: Int64, _ version: Int, _ event: ActivityEvent, _ state: [UInt8]?
    ) throws {
        let model = try model(id)
        try demand(timestamp > model.timestamp, id, "timestamp \(timestamp) after \(model.timestamp)")
        try demand(version == model.version + 1, id, "version \(version) after \(model.version)")
        try demand((event == .end) == model.isEnding, id, "\(event)")
        let content = state.map { JSON(trusted: $0[...]) }
        try demand(model.isTold(by: content), id, "told \(content?.description ?? "nothing"), which is not so")
        if model.posted == nil {
            try demand(content?["version"]?.int == version, id, "the state has another version")
            try demand(content?["at"]?.int == Int(timestamp), id, "the state has another time")
            models[id]?.floor = timestamp
        }
        models[id]?.timestamp = timestamp
        models[id]?.version = version
        models[id]?.owedSince = nil
        models[id]?.patience = 10_000
        models[id]?.wasGivenUp = false
    }

    mutating func delay() -> Int64 { dice.pick([0, 0, 1, 20, 700, isCalm ? 100 : 12_000]) }
}

/// Draws what happens to a world, the same for the same seed on every machine, so that a failure can be run again.
struct ActivityDice {
    private var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    mutating func below(_ bound: Int) -> Int { Int(truncatingIfNeeded: random.next() >> 1) % bound }

    mutating func pick<T>(_ choices: [T]) -> T { choices[below(choices.count)] }
}
