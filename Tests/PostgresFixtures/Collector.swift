import ChangeFeed
import Foundation
import Hub
import Logging
import Matching
import Synchronization

/// A consumer that keeps what it is given.
final class Collector: FeedConsumer {
    struct Seen: Sendable {
        let change: RowChange
        let at: ContinuousClock.Instant

        var name: String { change.table.name.text }
        var record: String? { change.record.map { String(decoding: $0, as: UTF8.self) } }
        var old: String? { change.oldRecord.map { String(decoding: $0, as: UTF8.self) } }
        /// `INSERT {"id":1}`, `UPDATE {"id":1} -> {"id":2}`.
        var line: String {
            let rows = [old, record].compactMap { $0 }.joined(separator: " -> ")
            return change.operation.rawValue + " " + rows
        }
    }

    private struct Content {
        var seen: [Seen] = []
        var statuses: [FeedStatus] = []
        var readies = 0
        var catalog = Catalog()
        var largestBatch = 0
        var broadcasts: [DatabaseBroadcast] = []
        var members: [Set<UInt32>] = []
    }

    private let content = Mutex(Content())
    /// Called with each batch, on the feed's thread.
    private let onBatch: @Sendable (Int) -> Void

    init(onBatch: @escaping @Sendable (Int) -> Void = { _ in }) { self.onBatch = onBatch }

    var seen: [Seen] { content.withLock { $0.seen } }
    var count: Int { content.withLock { $0.seen.count } }
    var lines: [String] { seen.map(\.line) }
    var statuses: [FeedStatus] { content.withLock { $0.statuses } }
    var readies: Int { content.withLock { $0.readies } }
    var catalog: Catalog { content.withLock { $0.catalog } }
    var broadcasts: [DatabaseBroadcast] { content.withLock { $0.broadcasts } }
    /// What was told of members tables.
    var members: [Set<UInt32>] { content.withLock { $0.members } }
    var largestBatch: Int { content.withLock { $0.largestBatch } }

    func feedDidBecomeReady(_ catalog: Catalog) {
        content.withLock {
            $0.readies += 1
            $0.catalog = catalog
        }
    }

    func catalogChanged(_ catalog: Catalog) { content.withLock { $0.catalog = catalog } }

    func membersChanged(_ changes: [MemberChange]) { content.withLock { $0.members.append(Set(changes.map(\.table))) } }

    func consumeEntries(_ entries: [FeedEntry]) {
        let now = ContinuousClock.now
        let changes = entries.compactMap { if case .change(let change) = $0 { change } else { nil } }
        let broadcasts = entries.compactMap { if case .broadcast(let message) = $0 { message } else { nil } }
        content.withLock { content in
            content.seen += changes.map { Seen(change: $0, at: now) }
            content.broadcasts += broadcasts
            content.largestBatch = max(content.largestBatch, entries.count)
        }
        onBatch(entries.count)
    }

    func statusChanged(_ status: FeedStatus) { content.withLock { $0.statuses.append(status) } }
}

struct TooLate: Error, CustomStringConvertible {
    let description: String
}

/// Waits until the condition holds.
///
/// - Throws: `TooLate` at the deadline.
func eventually(
    _ what: String, within limit: Duration = .seconds(40), _ condition: () throws -> Bool
) throws {
    let began = ContinuousClock.now
    while try !condition() {
        let waited = began.duration(to: .now)
        if waited > limit { throw TooLate(description: "not in time: \(what)") }
        // A look is work for Postgres, often with a session of its own.
        usleep(useconds_t(min(max(1000, waited / .microseconds(20)), 100_000)))
    }
}

extension Database {
    /// A feed on this database, ready; it ends with the body.
    func withFeed<Outcome>(
        node: String = "test", rhythm: Doorbell.Rhythm = Doorbell.Rhythm(), collector: Collector = Collector(),
        _ body: (ChangeFeed, Collector) throws -> Outcome
    ) throws -> Outcome {
        var configuration = FeedConfiguration(conninfo: conninfo, node: node, rhythm: rhythm)
        configuration.firstRetry = .milliseconds(100)
        let feed = ChangeFeed(configuration: configuration, logger: .silent, consumer: collector)
        feed.start()
        defer { feed.stop() }
        try eventually("the feed is ready") { feed.status == .ready }
        return try body(feed, collector)
    }

    /// What the feed delivers for a script.
    func changes(of script: String, count: Int) throws -> [String] {
        try withFeed { feed, collector in
            try run(script)
            try eventually("\(count) changes, have \(collector.lines)") { collector.count >= count }
            // What should not come would come with the next poll.
            let polls = feed.statistics.polls
            try run("notify roost")
            try eventually("one more poll") { feed.statistics.polls > polls + 1 }
            return collector.lines
        }
    }
}

/// Runs the bodies on threads of their own, as they block, and waits for all.
func concurrently(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
    let failure = Mutex<(any Error)?>(nil)
    let group = DispatchGroup()
    for index in 0..<count {
        group.enter()
        let thread = Thread {
            do { try body(index) } catch { failure.withLock { $0 = error } }
            group.leave()
        }
        thread.start()
    }
    group.wait()
    if let error = failure.withLock({ $0 }) { throw error }
}

extension Logger {
    static var silent: Logger {
        // ROOST_TEST_LOG=1 shows what a feed says.
        if getenv("ROOST_TEST_LOG") != nil { return Logger(label: "feed") }
        return Logger(label: "feed") { _ in SwiftLogNoOpLogHandler() }
    }
}
