/// Messages that cannot be sent yet to some, as a policy or a filter is not decided, and the questions about them: they are answered when
/// that is decided.
///
/// **Bounds**: a message is forgotten after `longestWait`, and a question when its time is over.
struct WaitingMessages {
    private struct Message {
        var readers: [ChangeGroupID: ChangeDelivery.Recipients]
        let since: Int64
        var questions: [ReceiptQuestion] = []
    }

    /// By `RowChange.id`.
    private var messages: [Int64: Message] = [:]

    /// In milliseconds: nobody waits longer for a proof (`alerts.proof_seconds`).
    private static let longestWait: Int64 = 60_000

    /// Takes over for whom a message waits now, in these groups.
    ///
    /// - Parameter now: in monotonic milliseconds.
    /// - Returns: the questions about it, which are to be asked again.
    mutating func update(_ change: Int64, _ waits: [MessageWait], at now: Int64) -> [ReceiptQuestion] {
        var message = messages.removeValue(forKey: change) ?? Message(readers: [:], since: now)
        for wait in waits { message.readers[wait.group] = wait.readers }
        let questions = message.questions
        message.questions = []
        if !message.readers.isEmpty { messages[change] = message }
        return questions
    }

    /// Whether a socket may be sent a message when it is decided.
    func mayReach(_ connection: Connection, _ change: Int64) -> Bool {
        guard !messages.isEmpty, let message = messages[change] else { return false }
        return connection.memberships.contains { membership in
            guard let rows = membership.rows, let readers = message.readers[rows.group.id] else { return false }
            if case .bearers(let claims) = readers { return claims.contains(rows.principal.claims) }
            return true
        }
    }

    // MARK: Questions

    /// Keeps a question until its message is decided.
    mutating func keep(_ question: ReceiptQuestion) {
        if !has(question) { messages[question.change]?.questions.append(question) }
    }

    func has(_ question: ReceiptQuestion) -> Bool {
        messages[question.change]?.questions.contains { $0.isSame(as: question) } ?? false
    }

    /// The questions that a socket is to answer, which are kept no more.
    mutating func takeQuestions(to slot: Slot) -> [ReceiptQuestion] {
        var taken: [ReceiptQuestion] = []
        for (change, message) in messages where message.questions.contains(where: { $0.slots.contains(slot) }) {
            taken += message.questions.filter { $0.slots.contains(slot) }
            messages[change]?.questions.removeAll { $0.slots.contains(slot) }
        }
        return taken
    }

    /// To be called once a second.
    mutating func advance(to now: Int64) {
        guard !messages.isEmpty else { return }
        messages = messages.filter { now - $0.value.since < Self.longestWait }
        for change in messages.keys { messages[change]?.questions.removeAll { $0.until <= now } }
    }
}

/// For whom of a group a message waits.
package struct MessageWait: Sendable {
    package let group: ChangeGroupID
    /// Nil: for nobody any more. What was decided to be sent has been sent.
    package let readers: ChangeDelivery.Recipients?

    package init(group: ChangeGroupID, readers: ChangeDelivery.Recipients?) {
        self.group = group
        self.readers = readers
    }
}
