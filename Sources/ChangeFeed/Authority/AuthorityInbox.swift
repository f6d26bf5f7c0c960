import CPostgres
import Glibc
import Postgres
import Synchronization

/// Questions on their way to the authority's thread; posting never waits for it.
final class AuthorityInbox: Sendable {
    private struct Content {
        var waiting: [PendingQuestion] = []
        var bytes = 0
        var isStopping = false
    }

    /// Questions that may wait. A loop asks one for each join and each new writer, so this is every socket of a large hub
    /// at once.
    private static let capacity = 100_000
    /// Bytes of what they say; a topic may be as long as a message.
    private static let capacityBytes = 64_000_000
    /// Of those that are taken together.
    private static let batchBytes = 1_000_000

    private let content = Mutex(Content())
    /// Readable while there is something to look at.
    private let news: Int32
    /// Readable once the thread is done.
    private let end: Int32

    init() {
        news = eventfd(0, roost_eventfd_flags)
        end = eventfd(0, roost_eventfd_flags)
        precondition(news >= 0 && end >= 0, "no file descriptor left for the authority")
    }

    deinit {
        close(news)
        close(end)
    }

    /// - Returns: false where the question cannot be taken.
    func post(_ question: PendingQuestion) -> Bool {
        let count: Int? = content.withLock { content in
            guard !content.isStopping, content.waiting.count < Self.capacity,
                content.bytes + question.bytes <= Self.capacityBytes
            else { return nil }
            content.waiting.append(question)
            content.bytes += question.bytes
            return content.waiting.count
        }
        if count == 1 { _ = eventfd_write(news, 1) }
        return count != nil
    }

    var isStopping: Bool { content.withLock { $0.isStopping } }

    func stop() {
        content.withLock { $0.isStopping = true }
        _ = eventfd_write(news, 1)
    }

    /// Waits for questions, for `stop`, or until `deadline`; takes up to `limit` questions.
    func take(_ limit: Int, until deadline: ContinuousClock.Instant?) -> [PendingQuestion] {
        let isIdle = content.withLock { $0.waiting.isEmpty && !$0.isStopping }
        if isIdle {
            var polled = [pollfd(fd: news, events: Int16(POLLIN), revents: 0)]
            _ = poll(&polled, 1, deadline.map { milliseconds(until: $0) } ?? -1)
        }
        var value: eventfd_t = 0
        _ = eventfd_read(news, &value)
        return content.withLock { content in
            var bytes = 0
            let count =
                content.waiting.prefix(limit).firstIndex { question in
                    bytes += question.bytes
                    return bytes > Self.batchBytes
                } ?? min(limit, content.waiting.count)
            let batch = Array(content.waiting.prefix(max(1, count)))
            content.waiting.removeFirst(batch.count)
            content.bytes -= batch.reduce(0) { $0 + $1.bytes }
            return batch
        }
    }

    func noteEnd() { _ = eventfd_write(end, 1) }

    func hasEnded(within patience: Duration) -> Bool {
        var polled = [pollfd(fd: end, events: Int16(POLLIN), revents: 0)]
        return poll(&polled, 1, milliseconds(until: .now + patience)) > 0
    }
}
