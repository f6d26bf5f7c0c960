import Workers

/// Work that other threads leave for the feed's thread; posting never waits for it.
struct Inbox: Sendable {
    private struct Content {
        var anytime: [FeedWork] = []
        var whenIdle: [FeedWork] = []
        var isStopping = false
    }

    private let mailbox = WorkerMailbox(Content())

    /// Readable while there is something to look at.
    var descriptor: Int32 { mailbox.descriptor }

    func post(_ work: @escaping FeedWork) { mailbox.post { $0.anytime.append(work) } }

    func postWhenIdle(_ work: @escaping FeedWork) { mailbox.post { $0.whenIdle.append(work) } }

    func stop() { mailbox.post { $0.isStopping = true } }

    var isStopping: Bool { mailbox.look { $0.isStopping } }

    func takeAnytime() -> [FeedWork] {
        mailbox.take { content in
            defer { content.anytime = [] }
            return content.anytime
        }
    }

    func takeWhenIdle() -> [FeedWork] {
        mailbox.look { content in
            defer { content.whenIdle = [] }
            return content.whenIdle
        }
    }

    var hasIdleWork: Bool { mailbox.look { !$0.whenIdle.isEmpty } }
}
