import Hub
import Push
import Stores
import Wire

/// Live Activities: reports their events to the scheduler and carries out its decisions: stores states, sends them, and shows them by
/// socket. Confined to the worker's thread.
final class ActivityUpdater {
    private let context: PushContext
    private var scheduler: ActivityScheduler
    private var facts: FactsReader
    private var topics = WatchedTopics()
    /// The phones that are asked whether they are connected, by the activity that each shows.
    private var phones: [Name: Phone] = [:]
    /// The timestamps of states that Apple accepted and that are not stored yet, by activity; in seconds since 1970.
    private var delivered: [Name: Int64] = [:]
    /// Posts that are not stored yet, by activity.
    private var posts: [Name: [UInt8]] = [:]
    /// Activities of the hub's last process: their phones may still come back.
    private var fromBefore: Set<Name> = []
    /// The time of the next check of connections, typing and presence, in monotonic milliseconds.
    private(set) var nextLook: Int64 = 0

    private struct Phone: Equatable {
        let user: Name
        let session: Name?
    }

    /// In milliseconds.
    private static let lookInterval: Int64 = 1000

    init(_ context: PushContext) {
        self.context = context
        scheduler = ActivityScheduler(context.rules.activity)
        facts = FactsReader(context)
    }

    var count: Int { scheduler.count }
    /// The time when the scheduler next has something to do, in monotonic milliseconds.
    var nextDue: Int64? { scheduler.nextDue }
    var statistics: ActivityStatistics { scheduler.statistics }

    func adopt(_ rules: ActivityRules) { scheduler.adopt(rules) }

    // MARK: Sending

    /// Does what is due, and checks connections, typing and presence about once a second.
    func advance() {
        let time = context.now
        guard count > 0 else {
            _ = context.presence.joins.takeAll()
            return
        }
        guard context.maySend else { return }
        if isTimeToLook(time.monotonic) || isDue(at: time) { look(at: time) }
        guard isDue(at: time) else { return }
        var pushes: [ActivityPush] = []
        for action in scheduler.advance(to: time) {
            switch action {
            case .stamp(let push): pushes.append(push)
            case .show(let state):
                context.show(
                    ActivitySummary(
                        activity: state.id, user: state.user, timestamp: state.timestamp, event: state.event,
                        state: state.state))
            case .ended(let id):
                stopWatching(id)
                context.database.attempt { try $0.end(activities: [id]) }
            case .unsendable(let id, let error):
                context.logger.warning(
                    """
                    A state of the Live Activity \(id) is not sent; see live_activity.content_state, or what was posted: \(error)
                    """)
            }
        }
        if !pushes.isEmpty { send(pushes) }
    }

    private func isDue(at time: HubTime) -> Bool { scheduler.nextDue.map { $0 <= time.monotonic } ?? false }

    /// Sends states whose stamps can be stored: the stamp is stored before anything leaves.
    private func send(_ pushes: [ActivityPush]) {
        var outcomes: [StampOutcome]?
        context.database.attempt { outcomes = try $0.stamp(pushes.map(\.stamp)) }
        let time = context.now
        guard let outcomes, outcomes.count == pushes.count else {
            for push in pushes { scheduler.unstamped(push.id, timestamp: push.timestamp, at: time) }
            return
        }
        var granted: [(push: Push, about: InFlightPush)] = []
        for (push, outcome) in zip(pushes, outcomes) {
            switch outcome {
            case .granted:
                if let push = scheduler.stamped(push.id, timestamp: push.timestamp, at: time) {
                    guard !context.outbox.isBad(push.destination.token) else {
                        scheduler.sent(push.id, timestamp: push.timestamp, .failed(retryLater: false), at: time)
                        continue
                    }
                    granted.append((self.push(push, at: time), .activity(id: push.id, timestamp: push.timestamp)))
                }
            case .refused(let owned) where owned.node == context.rules.node && !owned.hasEnded:
                scheduler.refused(push.id, timestamp: push.timestamp, current: owned.activity, at: time)
            case .refused, .unknown:
                // Another hub has the activity, or no hub has.
                remove(push.id)
            }
        }
        context.outbox.send(granted)
    }

    private func push(_ push: ActivityPush, at time: HubTime) -> Push {
        let isOfApple = push.destination.kind == .apns
        return Push(
            to: .device(push.destination), type: .liveActivity, priority: push.priority,
            // An update that is outdated when the phone is back is of no use.
            expiration: push.event == .end ? time.unix / 1000 + 4 * 3600 : push.staleDate,
            collapseID: isOfApple ? nil : CollapseID.fitting("activity \(push.id)"), payload: push.payload,
            lane: Name("activity \(push.id)"), replaces: true, registeredAt: push.registeredAt,
            deadline: push.staleDate * 1000)
    }

    func finished(_ id: Name, _ timestamp: Int64, _ push: Push, _ outcome: PushOutcome) {
        let result: ActivityPush.Outcome =
            switch outcome {
            case .delivered: .delivered
            case .unregistered(let since): .gone(since: since)
            case .unanswered: .unanswered
            case .badToken, .refused, .tooLarge: .failed(retryLater: false)
            case .superseded, .expired, .overflow, .stopped: .failed(retryLater: true)
            }
        if result == .delivered { delivered[id] = timestamp }
        scheduler.sent(id, timestamp: timestamp, result, at: context.now)
        if case .device(let destination) = push.target, let found = push.foundEnvironment {
            scheduler.move(id, from: destination, to: destination.moved(to: found))
        }
    }

    /// Stores which states Apple accepted, and the posts of backends.
    func settle(_ store: PushStore) throws {
        if !posts.isEmpty {
            try store.keep(posts: posts)
            posts = [:]
        }
        guard !delivered.isEmpty else { return }
        try store.noteDelivered(delivered)
        delivered = [:]
    }

    // MARK: Adding and removing activities

    /// Resumes the activities of the hub's last process, and takes over those of hubs that have died.
    func resume(_ store: PushStore) throws {
        let own = try store.ownActivities()
        fromBefore = Set(own.map(\.id))
        try take(own, store)
        try take(store.adoptOrphans(), store)
    }

    /// Takes over activities of the hub's last process and of other hubs, which this hub updates from now on.
    ///
    /// All of them are taken, even if the question about one of them fails: no other hub has them any more.
    func take(_ activities: [ActivityRegistration], _ store: PushStore) throws {
        var failure: (any Error)?
        for activity in activities {
            var answer = FactsAnswer.unknown
            do {
                if failure == nil { answer = try facts.ask(of: activity.id, about: activity.conversation, store) }
            } catch {
                failure = error
            }
            put(activity, facts.facts(answer))
            if answer == .noRow, activity.state != nil { leave(activity.id) }
            watch(activity)
        }
        if let failure { throw failure }
    }

    /// Registers an activity, or a new token of one, for an app.
    ///
    /// - Parameter wasBad: whether nothing was sent to the token, because Apple did not know it.
    func register(
        _ activity: ActivityRegistration, about conversation: Name?, wasBad: Bool, _ store: PushStore
    ) throws {
        var fresh: ConversationFacts?
        if scheduler.facts(of: activity.id) == nil {
            let answer = try facts.ask(of: activity.id, about: conversation, store)
            fresh = facts.facts(answer)
        }
        put(activity, fresh)
        if wasBad { scheduler.pushAgain(activity.id, at: context.now) }
        watch(activity)
    }

    private func put(_ activity: ActivityRegistration, _ facts: ConversationFacts?) {
        let time = context.now
        scheduler.put(
            activity, status: status(of: activity.id, activity.user, activity.session, at: time), facts: facts,
            wasDelivered: activity.wasDelivered, isPosted: activity.isPosted, at: time)
        // A phone that is stopped reports nothing, and its card has to show that.
        phones[activity.id] = Phone(user: activity.user, session: activity.session)
        context.presence.watch(activity.user, session: activity.session, true)
    }

    /// Removes an activity that is over, or that another hub has.
    func remove(_ id: Name) {
        scheduler.remove(id)
        posts[id] = nil
        stopWatching(id)
    }

    /// Takes a backend's state for an activity.
    func post(_ post: ActivityPost, to id: Name, _ store: PushStore) throws -> PostVerdict {
        if !scheduler.contains(id), let owned = try store.activity(id), !owned.hasEnded {
            // Another hub has it; the hub that gets the call takes it over.
            try take(store.adopt(id), store)
        }
        // The last check may be a second old.
        if let user = scheduler.user(of: id) {
            let time = context.now
            scheduler.set(status(of: id, user, scheduler.session(of: id), at: time), of: id, at: time)
        }
        let verdict = scheduler.post(post, to: id, at: context.now)
        if verdict == .queued || verdict == .withheld { posts[id] = post.content.stored }
        return verdict
    }

    // MARK: Content

    /// Notes a member of a message's audience, who may have activities about the message's conversation.
    func note(_ member: AudienceMember) {
        let ids = scheduler.activities(ofUser: member.user)
        guard !ids.isEmpty else { return }
        let notification = MessageNotification(
            member.variables, badge: member.badge, preview: context.rules.preview)
        guard let conversation = notification.conversation else { return }
        let time = context.now
        for id in ids where scheduler.conversation(of: id) == conversation {
            var facts = scheduler.facts(of: id) ?? ConversationFacts()
            notification.note(in: &facts, at: time.unix / 1000)
            scheduler.set(facts, of: id, at: time)
        }
    }

    /// Asks again about conversations whose facts are old: their users may have read elsewhere, or left.
    func refreshFacts(_ store: PushStore) throws {
        for id in facts.due(among: topics.activities) {
            let answer = try facts.ask(of: id, about: scheduler.conversation(of: id), store)
            let known = scheduler.facts(of: id)
            switch answer {
            case .row:
                if let facts = facts.facts(answer, after: known) { scheduler.set(facts, of: id, at: context.now) }
            case .noRow: if known != nil { leave(id) }
            case .unknown: break
            }
        }
    }

    /// Ends an activity whose user has left the conversation. A backend that sets the content also decides the end.
    private func leave(_ id: Name) {
        if !scheduler.isPosted(id) { scheduler.leave(id, at: context.now) }
    }

    private func watch(_ activity: ActivityRegistration) {
        guard let conversation = activity.conversation, !topics.contains(activity.id) else { return }
        var variables = TemplateVariables()
        variables.set("conversation_id", conversation.text)
        let topic = Name(context.rules.topic.text(variables))
        if topics.add(activity.id, to: topic) { context.presence.watch(topic) }
    }

    private func stopWatching(_ id: Name) {
        facts.forget(id)
        if let phone = phones.removeValue(forKey: id), !phones.values.contains(phone) {
            context.presence.watch(phone.user, session: phone.session, false)
        }
        if let topic = topics.remove(id) { context.presence.forget(topic) }
    }

    private func isTimeToLook(_ now: Int64) -> Bool {
        guard now >= nextLook else { return false }
        nextLook = now + Self.lookInterval
        return true
    }

    /// Checks connections, typing and presence.
    private func look(at time: HubTime) {
        for id in scheduler.ids {
            guard let user = scheduler.user(of: id) else { continue }
            let status = status(of: id, user, scheduler.session(of: id), at: time)
            if scheduler.status(of: id) != status { scheduler.set(status, of: id, at: time) }
        }
        for join in context.presence.joins.takeAll() where scheduler.user(of: join.activity) == join.user {
            scheduler.showAgain(join.activity, at: time)
        }
        for (topic, ids) in topics.activitiesByTopic {
            let typists = context.presence.typists(in: topic, at: time.monotonic)
            let present = context.presence.present(in: topic)
            for id in ids { note(typists, present, of: id, at: time) }
        }
    }

    private func note(
        _ typists: [(user: Name?, payload: [UInt8])], _ present: [Name], of id: Name, at time: HubTime
    ) {
        guard var facts = scheduler.facts(of: id), let own = scheduler.user(of: id) else { return }
        facts.typing = typists.filter { $0.user != own }.map { typist in
            JSON(trusted: typist.payload[...])["name"]?.string ?? typist.user?.text ?? ""
        }
        facts.online = present.filter { $0 != own }.map(\.text)
        if facts != scheduler.facts(of: id) { scheduler.set(facts, of: id, at: time) }
    }

    /// Returns whether the phone that shows an activity is connected. Right after the hub's start it may still come back.
    private func status(of id: Name, _ user: Name, _ session: Name?, at time: HubTime) -> ConnectionStatus {
        let status = context.presence.status(of: user, session: session, at: time.monotonic)
        guard status == .away, time.monotonic < context.restartUntil, fromBefore.contains(id) else { return status }
        return .inGrace(until: context.restartUntil)
    }
}

/// Asks the operator's statement about conversations on behalf of the users of activities: for facts that no change seen by the hub
/// reveals.
private struct FactsReader {
    private let context: PushContext
    /// The time of the last question about each activity's conversation, in monotonic milliseconds.
    private var askedAt: [Name: Int64] = [:]
    /// Activities whose questions have cost a session, each with the time until which no more are asked if it happened twice.
    private var losses: [Name: Loss] = [:]

    private struct Loss {
        let barredUntil: Int64?
    }

    /// In milliseconds.
    private static let bar: Int64 = 300_000
    /// More are not remembered: each has cost a session.
    private static let mostLosses = 10_000
    /// The number of questions in one turn, so that thousands of activities delay no alert.
    private static let batch = 50

    init(_ context: PushContext) { self.context = context }

    /// Asks about an activity's conversation.
    ///
    /// - Returns: `.unknown` if there is nothing to ask: nothing is sent then before a message reveals the conversation.
    mutating func ask(of id: Name, about conversation: Name?, _ store: PushStore) throws -> FactsAnswer {
        guard conversation != nil, let statement = context.rules.facts else { return .unknown }
        let now = context.now.monotonic
        askedAt[id] = now
        if let barred = losses[id]?.barredUntil, barred > now { return .unknown }
        do {
            let answer = try store.facts(of: id, statement: statement)
            losses[id] = nil
            return answer
        } catch {
            noteLoss(of: id, at: now)
            throw error
        }
    }

    /// Notes that a session was lost by a question about an activity. Once may have any reason; after the second time no question is
    /// asked for a while, because everyone else's pushes wait for the next session.
    private mutating func noteLoss(of id: Name, at now: Int64) {
        if losses.count >= Self.mostLosses { losses.removeAll() }
        let before = losses[id]
        losses[id] = Loss(barredUntil: before == nil ? nil : now + Self.bar)
        guard before != nil else { return }
        context.logger.error(
            """
            live_activity.facts costs the session that asks about the Live Activity \(id), which therefore waits for the next message; \
            it is asked again in \(Self.bar / 60_000) minutes.
            """)
    }

    /// Returns an answer's facts, added to those known otherwise.
    func facts(_ answer: FactsAnswer, after known: ConversationFacts? = nil) -> ConversationFacts? {
        guard case .row(let variables) = answer else { return known }
        var facts = known ?? ConversationFacts()
        MessageNotification(variables, preview: context.rules.preview)
            .note(in: &facts, at: context.now.unix / 1000)
        return facts
    }

    /// Returns those of `ids` that were last asked about long ago, or never, up to the number asked at a time.
    func due(among ids: some Sequence<Name>) -> [Name] {
        guard context.rules.facts != nil else { return [] }
        let old = context.now.monotonic - context.rules.refresh
        return Array(ids.filter { askedAt[$0] ?? .min <= old }.prefix(Self.batch))
    }

    mutating func forget(_ id: Name) {
        askedAt[id] = nil
        losses[id] = nil
    }
}
