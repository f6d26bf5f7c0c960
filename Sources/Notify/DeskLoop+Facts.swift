import ChangeFeed
import Hub
import Push
import Wire

/// How conversations stand for the users of activities: what no change says that the hub sees.
extension DeskLoop {
    /// Questions that one turn asks, so that thousands of activities delay no alert.
    private static let batch = 50

    /// Asks about an activity's conversation.
    ///
    /// - Returns: `.unknown` where nobody can be asked: nothing is told then before a message says what the conversation is.
    func facts(of id: String, about conversation: String?, _ store: PushStore) throws -> FactsAnswer {
        guard conversation != nil, let statement = rules.facts else { return .unknown }
        askedAt[id] = now.monotonic
        return try store.facts(of: id, statement: statement)
    }

    /// What an answer says, added to what is known otherwise.
    func facts(_ answer: FactsAnswer, after known: ConversationFacts? = nil) -> ConversationFacts? {
        guard case .row(let variables) = answer else { return known }
        var facts = known ?? ConversationFacts()
        Told(variables, preview: rules.preview).note(in: &facts, at: now.unix / 1000)
        return facts
    }

    /// Asks again about those that were asked about long ago: their users may have read elsewhere, or left.
    func refreshFacts(_ store: PushStore) throws {
        guard rules.facts != nil else { return }
        let old = now.monotonic - rules.refresh
        for id in topics.keys.filter({ askedAt[$0] ?? .min <= old }).prefix(Self.batch) {
            let answer = try facts(of: id, about: book.conversation(of: id), store)
            let known = book.facts(of: id)
            switch answer {
            case .row:
                if let facts = facts(answer, after: known) { book.set(facts, of: id, at: now) }
            case .noRow: if known != nil { leave(id) }
            case .unknown: break
            }
        }
    }

    /// A backend that says what an activity shows says when it ends, too.
    func leave(_ id: String) {
        if !book.isPosted(id) { book.leave(id, at: now) }
    }
}
