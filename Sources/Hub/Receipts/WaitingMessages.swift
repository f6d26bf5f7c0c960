/// Messages that cannot be sent to some receivers yet because a policy or a filter is undecided, and questions about
/// them, which are answered when that is decided.
///
/// **Bounds**: a message is dropped after `longestWait`, and a question when it expires.
struct WaitingMessages {
    private struct Message {
        var readers: [ChangeGroupID: ChangeDelivery.Recipients]
        let since: Int64
        var questions: [ReceiptQuestion] = []
    }

    /// By `RowChange.id`.
    private var messages: [Int64: Message] = [:]

    /// In milliseconds: no question waits longer for a proof (`alerts.proof_seconds`).
    private static let longestWait: Int64 = 60_000

    /// Updates for whom a message waits, in these groups.
    ///
    /// - Parameter now: in monotonic milliseconds.
    /// - Returns: the questions about the message, which must be asked again.
    mutating func updateWaits(_ change: Int64, _ waits: [MessageWait], at now: Int64) -> [ReceiptQuestion] {
        var message = messages.removeValue(forKey: change) ?? Message(readers: [:], since: now)
        for wait in waits { message.readers[wait.group] = wait.readers }
        let questions = message.questions
        message.questions = []
        if !message.readers.isEmpty { messages[change] = message }
        return questions
    }

    /// Whether a socket may be sent a message once it is decided.
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
    mutating func keepQuestion(_ question: ReceiptQuestion) {
        if !containsQuestion(question) { messages[question.change]?.questions.append(question) }
    }

    func containsQuestion(_ question: ReceiptQuestion) -> Bool {
        messages[question.change]?.questions.contains { $0.isSame(as: question) } ?? false
    }

    /// Removes and returns the questions that a socket may answer.
    mutating func takeQuestions(to slot: Slot) -> [ReceiptQuestion] {
        var taken: [ReceiptQuestion] = []
        for (change, message) in messages where message.questions.contains(where: { $0.slots.contains(slot) }) {
            taken += message.questions.filter { $0.slots.contains(slot) }
            messages[change]?.questions.removeAll { $0.slots.contains(slot) }
        }
        return taken
    }

    /// Drops expired messages and questions. Call once a second.
    mutating func advanceTime(to now: Int64) {
        guard !messages.isEmpty else { return }
        messages = messages.filter { now - $0.value.since < Self.longestWait }
        for change in messages.keys { messages[change]?.questions.removeAll { $0.until <= now } }
    }
}

/// The receivers in a group that a message waits for.
package struct MessageWait: Sendable {
    package let group: ChangeGroupID
    /// Nil if it no longer waits for any. Everything decided to be sent has been sent.
    package let readers: ChangeDelivery.Recipients?

    package init(group: ChangeGroupID, readers: ChangeDelivery.Recipients?) {
        self.group = group
        self.readers = readers
    }
}
