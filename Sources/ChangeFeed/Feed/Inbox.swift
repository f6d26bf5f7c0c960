import CPostgres
import Glibc
import Synchronization

/// Work that other threads leave for the feed's thread; posting never waits for it.
final class Inbox: Sendable {
    private struct Content {
        var anytime: [FeedWork] = []
        var whenIdle: [FeedWork] = []
        var isStopping = false
    }

    private let content = Mutex(Content())
    /// An eventfd: readable while there is something to look at.
    let descriptor: Int32

    init() {
        descriptor = eventfd(0, roost_eventfd_flags)
        precondition(descriptor >= 0, "no file descriptor left for the feed")
    }

    deinit { close(descriptor) }

    func post(_ work: @escaping FeedWork) {
        let isFirst = content.withLock { content in
            content.anytime.append(work)
            return content.anytime.count == 1
        }
        // Whoever came first has woken the feed for all who came before it looked.
        if isFirst { wake() }
    }

    func postWhenIdle(_ work: @escaping FeedWork) {
        content.withLock { $0.whenIdle.append(work) }
        wake()
    }

    func stop() {
        content.withLock { $0.isStopping = true }
        wake()
    }

    var isStopping: Bool { content.withLock { $0.isStopping } }

    func takeAnytime() -> [FeedWork] {
        clear()
        return content.withLock { content in
            defer { content.anytime = [] }
            return content.anytime
        }
    }

    func takeWhenIdle() -> [FeedWork] {
        content.withLock { content in
            defer { content.whenIdle = [] }
            return content.whenIdle
        }
    }

    var hasIdleWork: Bool { content.withLock { !$0.whenIdle.isEmpty } }

    private func wake() { _ = eventfd_write(descriptor, 1) }

    private func clear() {
        var value: eventfd_t = 0
        _ = eventfd_read(descriptor, &value)
    }
}
