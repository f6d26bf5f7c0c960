import Hub
import Workers

/// A broadcast on its way to its row, and the way back.
struct PendingMessage: Sendable {
    let message: PersistedMessage
    let answer: @Sendable (String?) -> Void
    /// Until when somebody waits for the answer.
    let deadline: ContinuousClock.Instant
}

/// Broadcasts on their way to the thread that writes them; posting never waits for it.
///
/// **Overload**: what is beyond its room is answered at once, without an id. One user's may be a tenth of it, so that a client which
/// sends without end leaves room for the others.
struct MessageInbox: Sendable {
    private struct Content {
        var waiting: [PendingMessage] = []
        var bytes = 0
        /// By the token's user; those of tokens without one count as one user's.
        var ofUsers: [[UInt8]: (count: Int, bytes: Int)] = [:]
        /// Messages that had no room, since the last look.
        var dropped = 0
        var isStopping = false
    }

    /// Ten seconds of a thousand a second.
    static let capacity = 10_000
    static let capacityBytes = 64_000_000
    static let parts = 10
    /// Of those that are written together.
    private static let batch = 500
    private static let batchBytes = 4_000_000

    private let mailbox = WorkerMailbox(Content())

    /// - Returns: false where there is no room for it.
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

    var waiting: Int { mailbox.look { $0.waiting.count } }
    var isStopping: Bool { mailbox.look { $0.isStopping } }

    func stop() { mailbox.post { $0.isStopping = true } }

    /// How many had no room since the last call.
    func takeDropped() -> Int {
        mailbox.look { content in
            defer { content.dropped = 0 }
            return content.dropped
        }
    }

    /// Waits for messages, for `stop`, or until the deadline.
    func await(until deadline: ContinuousClock.Instant?) {
        let isIdle = mailbox.look { $0.waiting.isEmpty && !$0.isStopping }
        if isIdle { mailbox.wait(until: deadline) }
    }

    /// Those that are written together next.
    func takeBatch() -> [PendingMessage] {
        mailbox.take { content in
            var bytes = 0
            let count =
                content.waiting.prefix(Self.batch).firstIndex { pending in
                    bytes += pending.message.bytes
                    return bytes > Self.batchBytes
                } ?? min(Self.batch, content.waiting.count)
            return Self.remove(min(max(1, count), content.waiting.count), from: &content)
        }
    }

    /// The first of them whose time is over.
    func takeLate(at now: ContinuousClock.Instant) -> [PendingMessage] {
        mailbox.look { content in
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
