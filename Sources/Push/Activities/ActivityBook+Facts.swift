package import Hub

/// What happens to an activity's user and conversation. False for an activity that is not in the book.
extension ActivityBook {
    @discardableResult
    package mutating func set(_ standing: Standing, of id: String, at now: HubTime) -> Bool {
        change(id) { entry, _ in entry.set(standing, at: now) } != nil
    }

    @discardableResult
    package mutating func set(_ facts: ConversationFacts, of id: String, at now: HubTime) -> Bool {
        change(id) { entry, _ in entry.set(facts, at: now) } != nil
    }

    /// Also false where the facts are not known yet: whoever loads them will see the change.
    @discardableResult
    package mutating func change(
        _ id: String, at now: HubTime, _ body: (inout ConversationFacts) -> Void
    ) -> Bool {
        change(id) { entry, _ in
            guard var facts = entry.facts else { return false }
            body(&facts)
            entry.set(facts, at: now)
            return true
        } ?? false
    }

    /// Its user has left the conversation, or may not see it any more: the activity is ended with the state it has.
    @discardableResult
    package mutating func leave(_ id: String, at now: HubTime) -> Bool {
        change(id) { entry, _ in entry.end(.byHub, at: now) } != nil
    }

    /// Shows the current state by socket again, such as to a socket that has joined the activity's topic since. Does
    /// nothing while no socket is alive.
    @discardableResult
    package mutating func showAgain(_ id: String, at now: HubTime) -> Bool {
        change(id) { entry, _ in
            guard entry.standing == .live else { return }
            entry.showsAgain = true
            entry.mark(at: now, isUrgent: true)
        } != nil
    }
}
