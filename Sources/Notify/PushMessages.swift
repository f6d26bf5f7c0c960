import ChangeFeed
import Hub
import Push
import Wire

/// New messages: who is to hear of them, and how.
extension DeskLoop {
    /// Rows of one question to Postgres.
    private static let batch = 500
    /// How often a question is asked again that a lock or a deadline kept from being answered.
    private static let mostTries = 3

    /// Puts what the messages at hand are to be alerted of into the queue, and tells the activities of their
    /// conversations. A message is settled when its alerts are in the queue.
    func readMessages(_ store: PushStore) throws {
        guard let statement = rules.audience else { return }
        while !messages.isEmpty {
            let batch = Array(messages.prefix(Self.batch))
            try read(batch, statement, store)
            statistics.messages += batch.count
            messages.removeFirst(batch.count)
            mailbox.settled(batch.count)
            alertsDue = 0
        }
    }

    private func read(_ batch: [RowChange], _ statement: String, _ store: PushStore) throws {
        var asked = Array(batch.enumerated())
        for attempt in 1... {
            let audience = try store.audience(for: asked.map(\.element), statement: statement)
            let members = audience.members.map { ($0, asked[$0.change].element) }
            try alert(members, store)
            for (member, change) in members { tellActivities(of: member, about: change) }
            guard !audience.unanswered.isEmpty else { return }
            guard attempt < Self.mostTries else {
                statistics.lostMessages += audience.unanswered.count
                logger.error(
                    """
                    \(audience.unanswered.count) messages are not pushed: Postgres did not answer alerts.audience in \
                    time, \(attempt) times; make the statement faster, or see what locks its tables.
                    """)
                return
            }
            asked = audience.unanswered.map { asked[$0] }
        }
    }

    // MARK: Alerts

    private func alert(_ members: [(AudienceMember, RowChange)], _ store: PushStore) throws {
        let time = now
        var drafts: [AlertDraft] = []
        let reached = members.filter { member, _ in member.hasDevice && !member.isMuted }
        guard !reached.isEmpty else { return }
        let elsewhere = try store.onlineElsewhere(Set(reached.map(\.0.user)))
        for (member, change) in reached {
            let told = Told(member.variables, badge: member.badge, preview: rules.preview)
            // To the second, as APNs keeps alerts.
            let committedAt = change.committedAtMicroseconds.map { $0 / 1_000_000 * 1000 } ?? time.unix
            let expiresAt = min(time.unix, committedAt) + rules.alertLife
            guard told.sender != member.user, expiresAt > time.unix else { continue }
            let standing: AlertDraft.Standing
            switch setup.whereabouts.users.standing(of: member.user) {
            case .live: standing = .dropped
            case .inGrace(let until):
                standing = .held(until: time.unix + max(0, until - time.monotonic))
            case .away: standing = elsewhere.contains(member.user) ? .elsewhere : .due
            }
            if standing != .due, standing != .dropped { waitedFor.insert(member.user) }
            var variables = told.variables
            if let badge = member.badge { variables.set("badge", badge) }
            if let id = change.messageID { variables.set("message_id", id) }
            drafts.append(
                AlertDraft(
                    message: change.messageKey, user: member.user, conversation: told.conversation,
                    variables: variables.json, expiresAt: expiresAt, standing: standing,
                    place: change.id))
        }
        guard !drafts.isEmpty else { return }
        statistics.alerts += try store.enqueue(drafts)
    }

    // MARK: Activities

    private func tellActivities(of member: AudienceMember, about change: RowChange) {
        let ids = book.activities(ofUser: member.user)
        guard !ids.isEmpty else { return }
        let told = Told(member.variables, badge: member.badge, preview: rules.preview)
        guard let conversation = told.conversation else { return }
        let time = now
        for id in ids where book.conversation(of: id) == conversation {
            var facts = book.facts(of: id) ?? ConversationFacts()
            told.note(in: &facts, at: time.unix / 1000)
            book.set(facts, of: id, at: time)
        }
    }
}
