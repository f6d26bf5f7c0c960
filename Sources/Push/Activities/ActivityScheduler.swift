package import Hub
package import Wire

/// Decides which state each Live Activity is sent, when, and whether by push or by socket.
///
/// For each activity
///   - timestamps increase strictly;
///   - a state that the phone already has is not sent again;
///   - changes are sent when they have settled, and at the latest after a while;
///   - at most one push is in flight;
///   - while the app's socket is alive, or its grace window is open, nothing is pushed and the state is shown by socket instead; when
///     the window is over, one push reports the app as disconnected;
///   - when the activity is too old, or its user has left the conversation, it is ended.
///
/// An activity that a backend has posted to belongs to the backend: the template no longer applies. The hub fills the members that the
/// backend leaves to it, such as whether the app is connected, and no others.
///
/// Pure: no clock, no I/O. The scheduler's owner reports events, calls `advance` when `nextDue` is reached, and carries out the
/// actions. A function that names an activity unknown to the scheduler does nothing and returns `false`.
package struct ActivityScheduler: Sendable {
    private(set) var rules: ActivityRules
    private var entries: [Name: LiveActivity] = [:]
    /// The time of each activity's next step, in monotonic milliseconds.
    private var dueTimes = TimerQueue<Name>()
    private var byUser: [Name: Set<Name>] = [:]
    private var byConversation: [Name: Set<Name>] = [:]
    package internal(set) var statistics = ActivityStatistics()

    package init(_ rules: ActivityRules) { self.rules = rules }

    /// Replaces the rules. An activity stays due by the old rules until something happens to it.
    package mutating func adopt(_ rules: ActivityRules) { self.rules = rules }

    package var count: Int { entries.count }

    package var ids: [Name] { Array(entries.keys) }

    /// The time of the next call of `advance`, in monotonic milliseconds, possibly past; nil if nothing waits.
    package var nextDue: Int64? { dueTimes.next }

    /// Does what is due.
    ///
    /// - Returns: the owner's actions; the order of an activity's actions must be kept.
    package mutating func advance(to now: HubTime) -> [ActivityAction] {
        var actions: [ActivityAction] = []
        while let id = dueTimes.takeDue(at: now.monotonic) {
            guard var entry = entries[id] else { continue }
            if let action = entry.step(at: now, rules, &statistics) { actions.append(action) }
            if entry.isOver {
                remove(id)
            } else {
                keep(entry)
            }
        }
        return actions
    }

    // MARK: Members

    /// Adds an activity that was registered, was taken over from another hub, or has a new token. A known activity keeps what is known
    /// of its phone, and a new token gets the current state if the app is away.
    ///
    /// - Parameters:
    ///   - facts: nil if they are not known yet: nothing is sent before they are, and known ones are kept.
    ///   - wasDelivered: whether the registration's state is known to have reached Apple, and nothing can have been shown by socket
    ///     since. When in doubt, as after a process that died while the app was connected, pass false: the state is then sent again.
    ///     Ignored for an activity in the scheduler.
    ///   - isPosted: whether the registration's state is a backend's (`ActivityStamp.isPosted`). Ignored for an activity in the
    ///     scheduler.
    package mutating func put(
        _ registration: ActivityRegistration, status: ConnectionStatus, facts: ConversationFacts?, wasDelivered: Bool,
        isPosted: Bool, at now: HubTime
    ) {
        let known = entries[registration.id]
        remove(registration.id)
        if var entry = known, !entry.isOver {
            entry.put(registration, status: status, facts: facts, at: now)
            keep(entry)
        } else {
            keep(
                LiveActivity(
                    registration, status: status, facts: facts, wasDelivered: wasDelivered, isPosted: isPosted,
                    at: now, rules))
        }
        byUser[registration.user, default: []].insert(registration.id)
        if let conversation = registration.conversation {
            byConversation[conversation, default: []].insert(registration.id)
        }
    }

    /// Moves an activity to the environment in which Apple knows its token. The phone's state is unchanged.
    package mutating func move(_ id: Name, from old: PushDestination, to new: PushDestination) {
        _ = change(id) { entry, _ in
            if entry.destination == old { entry.destination = new }
        }
    }

    /// Pushes the current state even if it was pushed before, because whether the phone has it is unknown.
    package mutating func pushAgain(_ id: Name, at now: HubTime) {
        _ = change(id) { entry, _ in entry.pushAgain(at: now) }
    }

    /// Forgets an activity, because the app has ended it or another hub has it.
    @discardableResult
    package mutating func remove(_ id: Name) -> Bool {
        guard let entry = entries.removeValue(forKey: id) else { return false }
        dueTimes.setDue(id, at: nil)
        Self.take(id, from: entry.user, in: &byUser)
        if let conversation = entry.conversation { Self.take(id, from: conversation, in: &byConversation) }
        return true
    }

    package func contains(_ id: Name) -> Bool { entries[id] != nil }

    package func activities(ofUser user: Name) -> Set<Name> { byUser[user] ?? [] }

    package func activities(inConversation conversation: Name) -> Set<Name> { byConversation[conversation] ?? [] }

    package func user(of id: Name) -> Name? { entries[id]?.user }
    package func session(of id: Name) -> Name? { entries[id]?.session }
    package func conversation(of id: Name) -> Name? { entries[id]?.conversation }
    package func destination(of id: Name) -> PushDestination? { entries[id]?.destination }
    package func status(of id: Name) -> ConnectionStatus? { entries[id]?.status }
    /// Whether a backend has set the activity's content.
    package func isPosted(_ id: Name) -> Bool { entries[id]?.posted != nil }

    /// A posted state as it would be sent to the phone now.
    func filled(_ content: PostedState, for id: Name, at now: HubTime) -> JSON {
        let seconds = now.unix / 1000
        if let entry = entries[id] {
            return entry.filled(content, version: entry.version + 1, timestamp: seconds, rules)
        }
        let nothing = ContentTemplate.Circumstances(
            activity: id, conversation: nil, startedAt: seconds, isConnected: false)
        return content.filled(
            with: rules.content.variables(ConversationFacts(), nothing, version: 1, timestamp: seconds))
    }

    /// The facts of an activity's conversation; nil if they are not known.
    package func facts(of id: Name) -> ConversationFacts? { entries[id]?.facts }

    private static func take(_ id: Name, from key: Name, in index: inout [Name: Set<Name>]) {
        index[key]?.remove(id)
        if index[key]?.isEmpty == true { index[key] = nil }
    }

    // MARK: Changing an entry

    private mutating func keep(_ entry: LiveActivity) {
        entries[entry.id] = entry
        dueTimes.setDue(entry.id, at: entry.due(rules))
    }

    mutating func change<Answer>(
        _ id: Name, _ body: (inout LiveActivity, inout ActivityStatistics) -> Answer
    ) -> Answer? {
        guard var entry = entries[id] else { return nil }
        let answer = body(&entry, &statistics)
        keep(entry)
        return answer
    }
}

/// Events of an activity's user and conversation. Each returns false for an activity that is not in the scheduler.
extension ActivityScheduler {
    @discardableResult
    package mutating func set(_ status: ConnectionStatus, of id: Name, at now: HubTime) -> Bool {
        change(id) { entry, _ in entry.set(status, at: now) } != nil
    }

    @discardableResult
    package mutating func set(_ facts: ConversationFacts, of id: Name, at now: HubTime) -> Bool {
        change(id) { entry, _ in entry.set(facts, at: now) } != nil
    }

    /// Changes the facts of an activity's conversation.
    ///
    /// - Returns: false also if the facts are not known yet: loading them later will include the change.
    @discardableResult
    package mutating func change(
        _ id: Name, at now: HubTime, _ body: (inout ConversationFacts) -> Void
    ) -> Bool {
        change(id) { entry, _ in
            guard var facts = entry.facts else { return false }
            body(&facts)
            entry.set(facts, at: now)
            return true
        } ?? false
    }

    /// Ends an activity with its present state, because its user has left the conversation or may no longer see it.
    @discardableResult
    package mutating func leave(_ id: Name, at now: HubTime) -> Bool {
        change(id) { entry, _ in entry.end(.byHub, at: now) } != nil
    }

    /// Shows the current state by socket again, such as to a socket that has since joined the activity's topic. Does nothing while no
    /// socket is alive.
    @discardableResult
    package mutating func showAgain(_ id: Name, at now: HubTime) -> Bool {
        change(id) { entry, _ in
            guard entry.status == .live else { return }
            entry.showsAgain = true
            entry.mark(at: now, isUrgent: true)
        } != nil
    }
}
