package import Hub
import Postgres
package import Wire
import Workers

/// Work that other threads leave for the feed's thread; posting never waits. Work posted before the feed starts waits for
/// the start, and work posted after its end is dropped.
struct FeedInbox: Sendable {
    private struct Content {
        var anytime: [FeedWork] = []
        var whenIdle: [FeedWork] = []
        var windowWaiters: [@Sendable (Bool) -> Void] = []
        var isStopping = false
        var isClosed = false
    }

    private let mailbox = WorkerMailbox(Content())

    /// Runs work on the feed's thread as soon as the thread waits for anything, even for a result of the database or while
    /// the database is away; such work cannot query. It may run between two batches of one window.
    func postWork(_ work: @escaping FeedWork) { mailbox.post { if !$0.isClosed { $0.anytime.append(work) } } }

    /// Runs work on the feed's thread between two windows, when it can query; also while the database is away, with
    /// `context.canQuery` false.
    ///
    /// - Returns: false if the feed has ended, so that the work is not done.
    @discardableResult
    func postIdleWork(_ work: @escaping FeedWork) -> Bool {
        mailbox.post { content in
            if !content.isClosed { content.whenIdle.append(work) }
            return !content.isClosed
        }
    }

    /// Requests a window that begins after the call.
    ///
    /// - Parameter done: called once on the feed's thread: with true after that window was delivered, or false if there
    ///   will be none, because the database is away or the feed has ended.
    func awaitWindow(_ done: @escaping @Sendable (Bool) -> Void) {
        let isPosted = mailbox.post { content in
            if !content.isClosed { content.windowWaiters.append(done) }
            return !content.isClosed
        }
        if !isPosted { done(false) }
    }

    func stop() { mailbox.post { $0.isStopping = true } }

    // MARK: For the feed's thread

    /// Readable while there is work.
    var descriptor: Int32 { mailbox.descriptor }

    var isStopping: Bool { mailbox.withContent { $0.isStopping } }

    func takeAnytimeWork() -> [FeedWork] {
        mailbox.takeMail { content in
            defer { content.anytime = [] }
            return content.anytime
        }
    }

    func takeIdleWork() -> [FeedWork] {
        mailbox.withContent { content in
            defer { content.whenIdle = [] }
            return content.whenIdle
        }
    }

    func takeWindowWaiters() -> [@Sendable (Bool) -> Void] {
        mailbox.withContent { content in
            guard !content.windowWaiters.isEmpty else { return [] }
            defer { content.windowWaiters = [] }
            return content.windowWaiters
        }
    }

    var hasIdleWork: Bool { mailbox.withContent { !$0.whenIdle.isEmpty } }

    /// Closes the inbox and returns the remaining work.
    func close() -> [FeedWork] {
        mailbox.takeMail { content in
            defer { content = Content(isStopping: true, isClosed: true) }
            return content.anytime + content.whenIdle + content.windowWaiters.map { done in { _ in done(false) } }
        }
    }
}

/// Work for the feed's thread.
package typealias FeedWork = @Sendable (FeedContext) -> Void

/// The view of the feed for posted work. Valid only during the work.
package struct FeedContext {
    private let ask: ((String, [String?]) throws -> [[String?]])?
    private let refresh: ((Set<Name>) throws -> Catalog)?
    private let find: ((RecoveryPoint) -> String?)?
    package let catalog: Catalog
    package let status: FeedStatus

    init(
        catalog: Catalog, status: FeedStatus, ask: ((String, [String?]) throws -> [[String?]])? = nil,
        refresh: ((Set<Name>) throws -> Catalog)? = nil, locate find: ((RecoveryPoint) -> String?)? = nil
    ) {
        self.catalog = catalog
        self.status = status
        self.ask = ask
        self.refresh = refresh
        self.find = find
    }

    /// Converts a point of this process to a cursor that every hub of the database understands. Nil if that is unknown, as
    /// while the database is away.
    package func locate(_ point: RecoveryPoint) -> String? { status == .ready ? find?(point) : nil }

    /// True if `query` would reach the database.
    package var canQuery: Bool { ask != nil }

    /// Runs one statement on the feed's connection and waits for it.
    ///
    /// - Parameter parameters: values of `$1`, `$2`, …, as text.
    /// - Throws: `PostgresError`; kind `server` is the statement's fault, the others mean that the database is away.
    package func query(_ sql: String, _ parameters: [String?] = []) throws -> [[String?]] {
        guard let ask else {
            throw PostgresError(.connection, "The database is away; try again when the hub is ready.")
        }
        return try ask(sql, parameters)
    }

    /// The catalog at this very moment, including tables watched or altered since the last poll. The consumer is told of
    /// changes, too.
    ///
    /// - Parameter roles: roles whose access it must cover, in addition to those it already covers.
    /// - Throws: `PostgresError`.
    package func currentCatalog(knowing roles: Set<Name> = []) throws -> Catalog {
        guard let refresh else {
            throw PostgresError(.connection, "The database is away; try again when the hub is ready.")
        }
        return try refresh(roles)
    }

    /// Distinguishes "not watched" from "does not exist".
    package func tableExists(schema: String, name: String) throws -> Bool {
        try !query(CatalogSQL.findTable.text, [schema, name]).isEmpty
    }
}

/// The feed's state, for the log, `/readyz` and the dashboard.
package enum FeedStatus: Sendable, Equatable {
    /// Not connected. The reason is a sentence that says what to do; nil until the first attempt has failed.
    case connecting(reason: String?)
    /// Every later commit is delivered.
    case ready
    case stopped
}
