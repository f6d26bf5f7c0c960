import Hub
import Workers

/// A broadcast to be stored, with the callback for its result.
struct PendingMessage: Sendable {
    let message: PersistedMessage
    let answer: @Sendable (String?) -> Void
    /// The time until which a client waits for the answer.
    let deadline: ContinuousClock.Instant
}

/// Broadcasts on their way to the thread that writes them; posting never blocks.
///
/// **Overload**: broadcasts beyond the capacity are answered at once, without an ID. One user may take up a tenth of
/// it, so that a client that sends endlessly leaves room for others.
struct MessageInbox: Sendable {
    private struct Content {
        var waiting: [PendingMessage] = []
        var bytes = 0
        /// By the token's user; tokens without one count as one user.
        var ofUsers: [[UInt8]: (count: Int, bytes: Int)] = [:]
        /// Messages that were rejected for lack of room since the last check.
        var dropped = 0
        var isStopping = false
    }

    /// Ten seconds at a thousand messages per second.
    static let capacity = 10_000
    static let capacityBytes = 64_000_000
    static let parts = 10
    /// The limits of one batch.
    private static let batch = 500
    private static let batchBytes = 4_000_000

    private let mailbox = WorkerMailbox(Content())

    /// - Returns: false if there is no room.
    func post(_ pending: PendingMessage) -> Bool {
        let user = Self.user(of: pending)
        let bytes = pending.message.bytes
        return mailbox.post { content in
            let own = content.ofUsers[user] ?? (0, 0)
            let hasRoom =
                content.waiting.count < Self.capacity && content.bytes + bytes <= Self.capacityBytes
                && (own.count == 0
                    || own.count < Self.capacity / Self.parts && own.bytes + bytes <= Self.capacityBytes / Self.parts)
            guard !content.isStopping, hasRoom else {
                content.dropped += 1
                return false
            }
            content.ofUsers[user] = (own.count + 1, own.bytes + bytes)
            content.waiting.append(pending)
            content.bytes += bytes
            return true
        }
    }

    var waiting: Int { mailbox.withContent { $0.waiting.count } }
    var isStopping: Bool { mailbox.withContent { $0.isStopping } }

    func stop() { mailbox.post { $0.isStopping = true } }

    /// The number of messages rejected since the last call.
    func takeDropped() -> Int {
        mailbox.withContent { content in
            defer { content.dropped = 0 }
            return content.dropped
        }
    }

    /// Waits for messages, for `stop`, or until the deadline.
    func waitForMessages(until deadline: ContinuousClock.Instant?) {
        let isIdle = mailbox.withContent { $0.waiting.isEmpty && !$0.isStopping }
        if isIdle { mailbox.wait(until: deadline) }
    }

    /// The next batch.
    func takeBatch() -> [PendingMessage] {
        mailbox.takeMail { content in
            var bytes = 0
            let count =
                content.waiting.prefix(Self.batch).firstIndex { pending in
                    bytes += pending.message.bytes
                    return bytes > Self.batchBytes
                } ?? min(Self.batch, content.waiting.count)
            return Self.remove(min(max(1, count), content.waiting.count), from: &content)
        }
    }

    /// The leading messages whose deadline has passed.
    func takeLate(at now: ContinuousClock.Instant) -> [PendingMessage] {
        mailbox.withContent { content in
            Self.remove(content.waiting.prefix { $0.deadline <= now }.count, from: &content)
        }
    }

    private static func remove(_ count: Int, from content: inout Content) -> [PendingMessage] {
        let batch = Array(content.waiting.prefix(count))
        content.waiting.removeFirst(count)
        for pending in batch {
            content.bytes -= pending.message.bytes
            let user = user(of: pending)
            guard let own = content.ofUsers[user] else { continue }
            content.ofUsers[user] = own.count > 1 ? (own.count - 1, own.bytes - pending.message.bytes) : nil
        }
        return batch
    }

    private static func user(of pending: PendingMessage) -> [UInt8] {
        pending.message.user.map { Array($0.utf8) } ?? []
    }
}
