import Foundation
import Synchronization
import Wire

extension Channel {
    /// The rows of a table that match a filter, in order and kept up to date.
    ///
    /// ```swift
    /// let messages = room.rows(
    ///     of: Message.self, in: "messages", where: .eq("conversation_id", conversation),
    ///     order: .descending("created_at"), limit: 50)
    /// try await room.subscribe()
    /// for try await list in messages { show(list) }
    /// ```
    ///
    /// The hub sends the present rows, and from that moment on every change: nothing is missing in between. After a
    /// loss of the connection only changes arrive; if the hub cannot determine them, all rows arrive again. A slow
    /// consumer gets the newest list.
    ///
    /// **Beyond the limit.** The list has the first `limit` rows of the order. A row that sorts before the last one
    /// pushes it out, and a row that sorts after it is left out. If rows are deleted, or move beyond the limit, the
    /// following ones take their place: some more than `limit` are held for that, and when they are used up, the list
    /// is read again within a second.
    ///
    /// A row that an update moves out of the filter stays in the list, because the hub does not report that: filter by
    /// columns that do not change. The same applies to rows that policies hide later (``LiveRows/reload()``).
    ///
    /// Ends when the channel is left. Throws when the hub cannot serve row changes, or ends the channel for good.
    ///
    /// - Parameters:
    ///   - type: the type that rows are decoded to, by `Configuration.decoder`.
    ///   - table: the table's name as Postgres writes it.
    ///   - schema: the schema's name as Postgres writes it.
    ///   - filter: the rows to list.
    ///   - order: the order; by default, and among equal rows, that of the key's columns.
    ///   - limit: the number of rows to show, from 1 to 1,000.
    ///   - key: the columns that identify a row: the primary key.
    ///   - keeping: the list's storage, which makes it available at once the next time, also offline. It is loaded
    ///     before this returns.
    ///   - pending: rows that are still in an outbox. They stand at the end where new rows appear: before the others in
    ///     a descending order, after them in an ascending one. They do not count towards the limit.
    public func rows<Row: Decodable & Sendable>(
        of type: Row.Type, in table: String, schema: String = "public", where filter: RowFilter? = nil,
        order: RowOrder = .key, limit: Int = 100, key: [String] = ["id"], keeping: RowKeeping? = nil,
        pending: PendingRows<Row>? = nil
    ) -> LiveRows<Row> {
        let request = ListRequest(
            schema: schema, table: table, filter: filter?.text, order: order, limit: limit, key: key)
        return LiveRows(self, request, keeping, pending)
    }

    /// The rows of a type's own table. Everything else is as in
    /// ``rows(of:in:schema:where:order:limit:key:keeping:pending:)``.
    public func rows<Row: TableRow>(
        of type: Row.Type, where filter: RowFilter? = nil, order: RowOrder = .key, limit: Int = 100,
        keeping: RowKeeping? = nil, pending: PendingRows<Row>? = nil
    ) -> LiveRows<Row> {
        rows(
            of: type, in: Row.tableName, schema: Row.schemaName, where: filter, order: order, limit: limit,
            key: Row.keyColumns, keeping: keeping, pending: pending)
    }
}

/// A row type with its own table.
public protocol TableRow: Decodable, Sendable {
    static var tableName: String { get }
    /// The schema; `public` by default.
    static var schemaName: String { get }
    /// The columns of the primary key; `id` by default.
    static var keyColumns: [String] { get }
}

extension TableRow {
    public static var schemaName: String { "public" }
    public static var keyColumns: [String] { ["id"] }
}

/// A list of rows over time, for one consumer. Ends when the channel is left; throws when it cannot continue.
public struct LiveRows<Row: Sendable>: AsyncSequence, Sendable {
    public typealias Element = RowList<Row>
    public typealias Failure = RoostError
    public typealias AsyncIterator = RoostThrowingSequence<RowList<Row>>.AsyncIterator

    private let lists: RoostThrowingSequence<RowList<Row>>
    private let again: @Sendable () -> Void

    /// Reads all rows again. Call it when the user may see other rows than before without any change, for example after
    /// joining or leaving a group.
    public func reload() { again() }

    public func makeAsyncIterator() -> AsyncIterator { lists.makeAsyncIterator() }
}

extension LiveRows where Row: Decodable {
    init(_ channel: Channel, _ request: ListRequest, _ keeping: RowKeeping?, _ pending: PendingRows<Row>?) {
        let configuration = channel.core.configuration
        let writer = keeping.map { ListWriter($0) }
        var (stored, problem): (StoredRows?, String?)
        if let keeping {
            do { stored = try keeping.storage.load(keeping.name) } catch {
                problem = "The list cannot be loaded as \(keeping.name): \(error)"
            }
        }
        let owner = ReplicaOwner()
        let list = pending.map { Self.pendingList(for: $0, of: owner) }
        let column = pending?.column ?? ""
        let replica = ListReplica(
            request, stored: stored, dedupeLimit: configuration.dedupeLimit,
            onRow: { row in
                if let list, let localID = row[column]?.string.flatMap(UUID.init) { list.rowArrived(localID) }
            },
            onReading: { list?.setReading($0) }, onChange: { writer?.noteChange() })
        writer?.watchChanges(replica)
        owner.setReplica(replica)
        if let problem { replica.showProblem(problem) }
        let composer = ListComposer<Row>(replica, list, localID: pending?.column, configuration.decoder)
        var task: Task<Void, Never>?
        if let pending, let list { task = Task { await pending.follow(list) } }
        let (lease, readAgain) = channel.attachList(replica) { [task] in
            task?.cancel()
            writer?.saveSoon(replica)
        }
        lists = RoostThrowingSequence { () async throws(RoostError) in
            try await replica.news.nextValue(lease) { _ in composer.composeList() }
        }
        again = { withExtendedLifetime(lease, readAgain) }
    }

    private static func pendingList(for pending: PendingRows<Row>, of owner: ReplicaOwner) -> PendingList<Row> {
        PendingList<Row>(
            confirm: { localID in
                Task {
                    do { try await pending.confirm(localID) } catch {
                        owner.replica?.showProblem("The outbox cannot be told of a row: \(error)")
                    }
                }
            },
            onChange: { owner.replica?.signalNews() }, onFailure: { owner.replica?.showProblem($0) })
    }
}

extension Channel {
    /// Connects a list to the channel until the lease ends.
    fileprivate func attachList(
        _ replica: ListReplica, onEnd: @escaping @Sendable () -> Void
    ) -> (Lease, readAgain: @Sendable () -> Void) {
        let subscription = core.nextID()
        core.postCommand(.attach(id, subscription, .rows(replica), nil))
        let lease = Lease { [self] in
            core.postCommand(.detach(id, subscription))
            onEnd()
        }
        return (lease, { [core, id] in core.postCommand(.readAgain(id, subscription)) })
    }
}

/// Refers to a list's replica for parts that are created before it.
private final class ReplicaOwner: Sendable {
    private struct Link {
        weak var replica: ListReplica?
    }

    private let link = Mutex(Link())

    var replica: ListReplica? { link.withLock { $0.replica } }

    func setReplica(_ replica: ListReplica) { link.withLock { $0.replica = replica } }
}
