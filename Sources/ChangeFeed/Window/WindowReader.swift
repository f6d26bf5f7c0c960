package import Hub
package import Matching
import Postgres
import Wire

/// One thing that a committed transaction left for the hub.
package enum FeedEntry: Sendable {
    case change(RowChange)
    /// A row of `realtime.messages`.
    case broadcast(DatabaseBroadcast)
    /// A call of `roost.notify()`, for whoever sends pushes.
    case notification(RowChange)
}

/// Takes what windows bring. Called on the feed's thread only, one call at a time.
package protocol WindowConsumer: AnyObject, Sendable {
    /// Comes before the first entry of a window in which tables were written that scopes name as members
    /// (`Catalog.memberTables`). All that commits before an entry of this window is told here or was told before.
    func membersChanged(_ changes: [MemberChange])

    /// A window begins, or begins anew: how its entries are told apart by cursors.
    func windowBegan(_ cursors: CursorWindow)

    /// Whether anybody is to be handed changes of a table. Those of others are not read, as long as this says so.
    func hears(_ table: Table) -> Bool

    /// Entries in order; at most 256, or about 256 KiB, at a time. May block: nothing is read meanwhile.
    ///
    /// - Throws: `PostgresError` where the database is needed for them and does not answer. The feed then connects anew,
    ///   and the entries come again.
    func consume(_ entries: [FeedEntry]) throws
}

/// Takes the rows of one window as they arrive and hands them on in batches.
final class WindowReader {
    private static let batchRows = 256
    private static let batchBytes = 262_144

    /// What was handed on, in order.
    private(set) var handed: [DeliveredChanges.Key] = []
    /// Changes that belong to no watched table, by table.
    private(set) var orphans: [UInt32: Int] = [:]
    /// Why the rest of the window is of no use yet.
    private(set) var obstacle: Obstacle?
    private(set) var isComplete = false
    /// Messages that cannot be delivered: over the limit, or without a topic.
    private(set) var undelivered = 0
    /// What the window's first row told of the outbox, where it was asked.
    private(set) var outbox: [UInt8]?
    /// Tables of which changes could not be recorded, so that nobody can be told them.
    private(set) var lossy: Set<UInt32> = []
    /// Something young was deleted from the outbox, by TRUNCATE or otherwise.
    private(set) var hasNewsOfOutbox = false
    /// Rows of tables that nobody hears, `WindowStatements.mostPassed` at most.
    private(set) var passed = 0
    /// Nothing was written that the hub is to hear of or to pass over.
    var isEmpty: Bool { handed.isEmpty && passed == 0 && lossy.isEmpty }

    enum Obstacle {
        /// A table that the catalog does not know, or knows otherwise than the record shows it.
        case table(UInt32)
        /// Tables, policies or privileges are others than the catalog has.
        case version
        /// Nobody looked for so long whether the catalog is current that a row may be here which a change of it is for.
        case age
        /// Somebody hears a table that the window passes over.
        case listener
    }

    private let consumer: any WindowConsumer
    private let catalog: Catalog
    private let settled: [UInt32: Table?]
    private let mayAskAgain: Bool
    private let skip: Set<DeliveredChanges.Key>
    private let unheard: [Table]
    private let catalogAsOf: ContinuousClock.Instant
    private let willHandOn: () -> Void
    let start: FeedCursor
    private var snapshot: Snapshot?
    /// The window's end, until the consumer was told of it: an empty window has no cursors.
    private var window: Snapshot?
    private var batch: [FeedEntry] = []
    private var batchKeys: [DeliveredChanges.Key] = []
    private var bytes = 0

    /// - Parameters:
    ///   - settled: tables for which reading the catalog anew would tell no more, as they were described before.
    ///   - mayAskAgain: whether the catalog may be read once more for a record it does not fit.
    ///   - skip: what was handed on before the connection broke.
    ///   - catalogAsOf: the catalog is not older than this: the statement that found it current was sent then.
    ///   - unheard: the tables that the window passes over, as nobody heard them when it was sent.
    ///   - start: where the window begins.
    ///   - willHandOn: called before each batch. Whoever was told to be subscribed before an entry committed has to be
    ///     known when the entry is handed on.
    init(
        consumer: any WindowConsumer, catalog: Catalog, settled: [UInt32: Table?], mayAskAgain: Bool,
        catalogAsOf: ContinuousClock.Instant, skip: Set<DeliveredChanges.Key>, passingOver unheard: [Table],
        after start: FeedCursor,
        willHandOn: @escaping () -> Void
    ) {
        self.consumer = consumer
        self.catalog = catalog
        self.settled = settled
        self.mayAskAgain = mayAskAgain
        self.catalogAsOf = catalogAsOf
        self.skip = skip
        self.unheard = unheard
        self.start = start
        self.willHandOn = willHandOn
    }

    /// - Returns: false when the rest of the window is of no use yet.
    func take(_ row: QueryResult) throws -> Bool {
        let row = OutboxRow(row)
        guard let at = row.writtenAt else { throw PostgresError(.server, "A change has no time.") }
        let id = row.id ?? 0
        guard id > 0 else {
            snapshot = Snapshot(String(decoding: at, as: UTF8.self))
            guard let snapshot else { throw PostgresError(.server, "Postgres sent a snapshot the hub cannot read.") }
            window = snapshot
            return try takeFacts(row.result)
        }
        let key = DeliveredChanges.Key(id: id, writtenAt: Timestamps.fingerprint(at))
        if !skip.isEmpty, skip.contains(key) { return true }
        switch row.letter {
        case UInt8(ascii: "M"):
            if !row.isReduced, let message = row.record.flatMap({ DatabaseBroadcast(messageRow: $0) }) {
                try append(.broadcast(message), key, bytes: row.record?.count ?? 0)
            } else {
                undelivered += 1
            }
            return true
        case UInt8(ascii: "N"):
            try append(.notification(row.notification(at: row.committedAt ?? at)), key, bytes: row.record?.count ?? 0)
            return true
        // Nobody is told of a TRUNCATE; that it happened to a members table came with the facts.
        case UInt8(ascii: "T"): return true
        case UInt8(ascii: "X"):
            hasNewsOfOutbox = true
            return true
        case UInt8(ascii: "L"):
            lossy.insert(row.table)
            return true
        default: return try add(row, id: id, key: key, at: row.committedAt ?? at)
        }
    }

    /// What the window's first row says of the window as a whole.
    ///
    /// Live means live, also for tables that are passed over. The snapshot was taken before this row came, so whoever
    /// subscribes from here on is owed nothing of the window. Whoever did since the statement was sent may have been told so
    /// before the snapshot was taken, and is owed what committed in between: the window has to be read again. Nothing of
    /// it was handed on, as this row is the first.
    private func takeFacts(_ row: QueryResult) throws -> Bool {
        if unheard.contains(where: consumer.hears) {
            obstacle = .listener
            return false
        }
        passed = Int(row.integer(0, 1) ?? 0)
        // What changed a second before a row was committed counts for it, however long a window takes: all of this one was
        // committed by now.
        if let version = row.text(0, 5) {
            if version != catalog.version { obstacle = .version }
        } else if ContinuousClock.now - catalogAsOf > CatalogWatch.longestAge {
            obstacle = .age
        }
        guard obstacle == nil else { return false }
        outbox = row.bytes(0, 7).map { Array($0) }
        if let members = row.bytes(0, 6) {
            consumer.membersChanged(memberChanges(Array(members)))
        }
        return true
    }

    /// Reads MembersInWindow of Window.sql.
    private func memberChanges(_ bytes: [UInt8]) -> [MemberChange] {
        let all = { [catalog] in catalog.memberTables.sorted().map { MemberChange.table($0) } }
        // Values of rows are in it, which may be nested deeper than the hub reads.
        let list: JSON
        do { list = try JSON(parsing: bytes) } catch { return all() }
        func oid(_ json: JSON) -> UInt32? { UInt32(json.string ?? json.description) }
        let changes = list.elements.compactMap { element -> MemberChange? in
            let parts = element.elements
            guard parts.count == 3 else { return oid(element).map { .table($0) } }
            func version(_ part: JSON) -> [UInt8]? { part.isNull ? nil : Array(part.bytes) }
            return oid(parts[0]).map { .row($0, old: version(parts[2]), new: version(parts[1])) }
        }
        // There may be more than were read; and what cannot be read concerns everybody.
        guard changes.count < WindowStatements.mostMemberRows, changes.count == list.elements.count else {
            return all()
        }
        return changes
    }

    private func add(
        _ row: OutboxRow, id: Int64, key: DeliveredChanges.Key, at: UnsafeBufferPointer<UInt8>
    ) throws -> Bool {
        let (oid, isReduced, record, old) = (row.table, row.isReduced, row.record, row.oldRecord)
        guard var table = catalog.table(oid) else {
            guard settled[oid] != nil else { return giveUp(on: oid) }
            orphans[oid, default: 0] += 1
            return true
        }
        let operation = row.operation ?? .update
        if let any = record ?? old, !isReduced, !catalog.describes(any, of: oid, after: operation) {
            guard let older = settled[oid] else { return giveUp(on: oid) }
            let fitting = table.restricted(to: any, older: older)
            // Altered again since the catalog was read.
            if mayAskAgain, fitting.columns.count < RecordKeys.all(of: any).count { return giveUp(on: oid) }
            table = fitting
        }
        let change = RowChange(
            id: id, table: table, operation: operation,
            commitTimestamp: Timestamps.forClients(at), committedAtMicroseconds: Timestamps.microseconds(at),
            record: record.map { Array($0) },
            oldRecord: old.map { Array($0) }, text: row.text.map { Array($0) }, oldText: row.oldText.map { Array($0) },
            isReduced: isReduced, deletion: row.deletion)
        let texts = (row.text?.count ?? 0) + (row.oldText?.count ?? 0)
        try append(.change(change), key, bytes: (record?.count ?? 0) + (old?.count ?? 0) + texts)
        return true
    }

    private func append(_ entry: FeedEntry, _ key: DeliveredChanges.Key, bytes count: Int) throws {
        batch.append(entry)
        batchKeys.append(key)
        bytes += count
        if batch.count >= Self.batchRows || bytes >= Self.batchBytes { try flush() }
    }

    private func giveUp(on oid: UInt32) -> Bool {
        obstacle = .table(oid)
        return false
    }

    /// - Returns: the cursor after this window, or nil where there is an obstacle.
    func finish() throws -> Snapshot? {
        try flush()
        guard obstacle == nil, let snapshot else { return nil }
        isComplete = true
        return snapshot
    }

    /// What was taken for a leftover was none: the window has to be read again.
    func reopen() { isComplete = false }

    private func flush() throws {
        guard !batch.isEmpty else { return }
        if let window {
            consumer.windowBegan(CursorWindow(epoch: start.epoch, seen: start.seen, window: window))
            self.window = nil
        }
        willHandOn()
        try consumer.consume(batch)
        handed += batchKeys
        batch.removeAll(keepingCapacity: true)
        batchKeys.removeAll(keepingCapacity: true)
        bytes = 0
    }
}

/// A row of roost.change as Window.sql and RecoveryWindow in Recovery.sql bring it, with their columns in the same places. Its bytes are
/// valid for as long as the row is kept.
struct OutboxRow {
    let result: QueryResult

    init(_ result: QueryResult) { self.result = result }

    var id: Int64? { result.integer(0, 0) }
    /// The oid.
    var table: UInt32 { UInt32(truncatingIfNeeded: result.integer(0, 1) ?? 0) }
    /// What happened, by the letter that the triggers write.
    var letter: UInt8? { result.bytes(0, 2)?.first }
    /// It stands for a change of the table that could not be recorded.
    var isLoss: Bool { letter == UInt8(ascii: "L") }
    /// Values were left out, as the row is too large.
    var isReduced: Bool { result.flag(0, 3) }
    var writtenAt: UnsafeBufferPointer<UInt8>? { result.bytes(0, 4) }
    /// Where the server keeps times of commits.
    var committedAt: UnsafeBufferPointer<UInt8>? { result.bytes(0, 5) }
    var record: UnsafeBufferPointer<UInt8>? { result.bytes(0, 6) }
    var oldRecord: UnsafeBufferPointer<UInt8>? { result.bytes(0, 7) }
    var text: UnsafeBufferPointer<UInt8>? { result.bytes(0, 8) }
    var oldText: UnsafeBufferPointer<UInt8>? { result.bytes(0, 9) }
    /// What deleted the row.
    var deletion: WriterTransaction? { result.text(0, 10).flatMap { WriterTransaction($0) } }

    /// Nil for what is no change of a row.
    var operation: RowChange.Operation? {
        switch letter {
        case UInt8(ascii: "I"): .insert
        case UInt8(ascii: "U"): .update
        case UInt8(ascii: "D"): .delete
        default: nil
        }
    }
}

extension OutboxRow {
    /// What `roost.notify()` wrote, as the row of a table that there is not.
    fileprivate func notification(at committed: UnsafeBufferPointer<UInt8>) -> RowChange {
        RowChange(
            id: id ?? 0, table: .notifications, operation: .insert, commitTimestamp: Timestamps.forClients(committed),
            committedAtMicroseconds: Timestamps.microseconds(committed), record: record.map { Array($0) },
            oldRecord: nil,
            isReduced: false)
    }
}

extension DatabaseBroadcast {
    /// Reads a row of `realtime.messages` as the trigger on it leaves it in the outbox (wire-protocol B); nil for what is no
    /// message, as it has no topic.
    fileprivate init?(messageRow record: UnsafeBufferPointer<UInt8>) {
        let row: JSON
        do { row = try JSON(parsing: Array(record)) } catch { return nil }
        guard let topic = row["topic"]?.string, !topic.isEmpty else { return nil }
        let id = row["id"]?.string ?? ""
        let metadata = Array("{\"id\":".utf8) + JSONString.encode(id) + [UInt8(ascii: "}")]
        let user: UserBroadcast
        if let bytes = row["binary_payload"]?.string.flatMap({ Hexadecimal.bytea(Array($0.utf8)) }) {
            user = UserBroadcast(
                event: row["event"]?.string ?? "", encoding: .raw, payload: bytes[...], metadata: metadata)
        } else {
            user = UserBroadcast(
                event: row["event"]?.string ?? "", encoding: .json,
                payload: row["payload"]?.bytes ?? Array("{}".utf8)[...], metadata: metadata)
        }
        // Text has no limit of 255 bytes for a topic or an event, and every client reads its meta.
        let broadcast = user.encoding == .raw ? BroadcastMessage.user(user) : .text(user.textPayload() ?? [])
        let key = ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: row["private"]?.bool ?? false)
        self.init(key: key, id: id, broadcast: broadcast)
    }
}
