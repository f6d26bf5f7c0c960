package import Hub
package import Matching
import Postgres
import Wire

/// One item that a committed transaction left for the hub.
package enum FeedEntry: Sendable {
    case change(RowChange)
    /// A row of `realtime.messages`.
    case broadcast(DatabaseBroadcast)
    /// A call of `roost.notify()`, for the sender of pushes.
    case notification(RowChange)
}

/// Consumes windows. Called on the feed's thread only, one call at a time.
package protocol WindowConsumer: AnyObject, Sendable {
    /// Called before the first entry of a window in which scopes' members tables (`Catalog.memberTables`) were written.
    /// Covers everything committed before any entry of this window, together with earlier calls.
    func membersChanged(_ changes: [MemberChange])

    /// A window begins, or begins again, with these cursors for its entries.
    func windowBegan(_ cursors: CursorWindow)

    /// True if changes of a table have a recipient. Changes of other tables are not read.
    func wantsTable(_ table: Table) -> Bool

    /// Receives entries in order; at most 256, or about 256 KiB, at a time. May block: nothing is read meanwhile.
    ///
    /// - Throws: `PostgresError` if the database is needed for them and does not answer. The feed then reconnects, and the
    ///   entries come again.
    func consumeEntries(_ entries: [FeedEntry]) throws
}

/// Takes the rows of one window as they arrive and hands them on in batches.
final class WindowReader {
    private static let batchRows = 256
    private static let batchBytes = 262_144

    /// The changes handed on, in order.
    private(set) var handed: [DeliveredChanges.Key] = []
    /// Number of changes that belong to no watched table, by table.
    private(set) var orphans: [UInt32: Int] = [:]
    /// The reason why the rest of the window is not usable yet.
    private(set) var obstacle: Obstacle?
    private(set) var isComplete = false
    /// Messages that cannot be delivered: over the limit, or without a topic.
    private(set) var undelivered = 0
    /// The outbox's state from the window's first row, if requested.
    private(set) var outbox: [UInt8]?
    /// Tables with changes that could not be recorded and so cannot be delivered.
    private(set) var lossy: Set<UInt32> = []
    /// True if something young was deleted from the outbox, by TRUNCATE or otherwise.
    private(set) var hasNewsOfOutbox = false
    /// Rows of skipped tables, at most `WindowStatements.mostPassed`.
    private(set) var passed = 0
    /// True if nothing was written that the hub delivers or skips.
    var isEmpty: Bool { handed.isEmpty && passed == 0 && lossy.isEmpty }

    enum Obstacle {
        /// A table that the catalog does not know, or knows differently from the record.
        case table(UInt32)
        /// Tables, policies or privileges differ from the catalog.
        case version
        /// The catalog was last confirmed so long ago that a row may be here to which a change of the catalog applies.
        case age
        /// A skipped table has gained a subscriber.
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
    /// The window's end, until the consumer was told it: an empty window has no cursors.
    private var window: Snapshot?
    private var batch: [FeedEntry] = []
    private var batchKeys: [DeliveredChanges.Key] = []
    private var bytes = 0

    /// - Parameters:
    ///   - settled: tables for which reading the catalog again would not help, with their previous description.
    ///   - mayAskAgain: true if the catalog may be read once more for a record that does not fit.
    ///   - skip: changes handed on before the connection broke.
    ///   - catalogAsOf: the time when the statement that found the catalog current was sent.
    ///   - unheard: the tables that the window skips, because they had no recipient when it was sent.
    ///   - start: the window's start.
    ///   - willHandOn: called before each batch. A subscriber that was told `live` before an entry committed must be known
    ///     when the entry is handed on.
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

    /// - Returns: false if the rest of the window is not usable yet.
    func takeRow(_ row: QueryResult) throws -> Bool {
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
        // A TRUNCATE is not delivered; for a members table, the first row's facts have reported it.
        case UInt8(ascii: "T"): return true
        case UInt8(ascii: "X"):
            hasNewsOfOutbox = true
            return true
        case UInt8(ascii: "L"):
            lossy.insert(row.table)
            return true
        default: return try addChange(row, id: id, key: key, at: row.committedAt ?? at)
        }
    }

    /// Reads what the window's first row says about the whole window.
    ///
    /// Live means live, also for tables that are skipped. The snapshot was taken before this row came, so a client that
    /// subscribes after this row is owed nothing of the window. A client that subscribed after the statement was sent may
    /// have been told so before the snapshot was taken, and is owed what committed in between: the window has to be read
    /// again. Nothing of it has been handed on, because this row is the first.
    private func takeFacts(_ row: QueryResult) throws -> Bool {
        if unheard.contains(where: consumer.wantsTable) {
            obstacle = .listener
            return false
        }
        passed = Int(row.integer(0, 1) ?? 0)
        // A catalog change applies to rows committed a second later, however long a window takes: everything in this one is
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

    /// Parses the result of MembersInWindow in Window.sql.
    private func memberChanges(_ bytes: [UInt8]) -> [MemberChange] {
        let all = { [catalog] in catalog.memberTables.sorted().map { MemberChange.table($0) } }
        // It contains values of rows, which may be nested deeper than the hub parses.
        let list: JSON
        do { list = try JSON(parsing: bytes) } catch { return all() }
        func oid(_ json: JSON) -> UInt32? { UInt32(json.string ?? json.description) }
        let changes = list.elements.compactMap { element -> MemberChange? in
            let parts = element.elements
            guard parts.count == 3 else { return oid(element).map { .table($0) } }
            func version(_ part: JSON) -> [UInt8]? { part.isNull ? nil : Array(part.bytes) }
            return oid(parts[0]).map { .row($0, old: version(parts[2]), new: version(parts[1])) }
        }
        // There may be more than were read; and an unreadable list concerns every user.
        guard changes.count < WindowStatements.mostMemberRows, changes.count == list.elements.count else {
            return all()
        }
        return changes
    }

    private func addChange(
        _ row: OutboxRow, id: Int64, key: DeliveredChanges.Key, at: UnsafeBufferPointer<UInt8>
    ) throws -> Bool {
        let (oid, isReduced, record, old) = (row.table, row.isReduced, row.record, row.oldRecord)
        guard var table = catalog.table(oid) else {
            guard settled[oid] != nil else { return giveUp(on: oid) }
            orphans[oid, default: 0] += 1
            return true
        }
        let operation = row.operation ?? .update
        if let any = record ?? old, !isReduced, !catalog.describesRecord(any, of: oid, after: operation) {
            guard let older = settled[oid] else { return giveUp(on: oid) }
            let fitting = table.restricted(to: any, older: older)
            // The table was altered again after the catalog was read.
            if mayAskAgain, fitting.columns.count < RecordKeys.allKeys(of: any).count { return giveUp(on: oid) }
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
        if batch.count >= Self.batchRows || bytes >= Self.batchBytes { try flushBatch() }
    }

    private func giveUp(on oid: UInt32) -> Bool {
        obstacle = .table(oid)
        return false
    }

    /// - Returns: the cursor after this window, or nil if there is an obstacle.
    func finishWindow() throws -> Snapshot? {
        try flushBatch()
        guard obstacle == nil, let snapshot else { return nil }
        isComplete = true
        return snapshot
    }

    /// Marks the window as incomplete again: a supposed leftover was none, so the window has to be read again.
    func reopenWindow() { isComplete = false }

    private func flushBatch() throws {
        guard !batch.isEmpty else { return }
        if let window {
            consumer.windowBegan(CursorWindow(epoch: start.epoch, seen: start.seen, window: window))
            self.window = nil
        }
        willHandOn()
        try consumer.consumeEntries(batch)
        handed += batchKeys
        batch.removeAll(keepingCapacity: true)
        batchKeys.removeAll(keepingCapacity: true)
        bytes = 0
    }
}

/// A row of roost.change in the column order shared by Window.sql and by RecoveryWindow in Recovery.sql. Its bytes are
/// valid for as long as the row is kept.
struct OutboxRow {
    let result: QueryResult

    init(_ result: QueryResult) { self.result = result }

    var id: Int64? { result.integer(0, 0) }
    /// The table's oid.
    var table: UInt32 { UInt32(truncatingIfNeeded: result.integer(0, 1) ?? 0) }
    /// The operation, by the letter that the triggers write.
    var letter: UInt8? { result.bytes(0, 2)?.first }
    /// True for a row that stands for a change of the table that could not be recorded.
    var isLoss: Bool { letter == UInt8(ascii: "L") }
    /// True if values were left out because the row is too large.
    var isReduced: Bool { result.flag(0, 3) }
    var writtenAt: UnsafeBufferPointer<UInt8>? { result.bytes(0, 4) }
    /// The time of the commit, if the server keeps such times.
    var committedAt: UnsafeBufferPointer<UInt8>? { result.bytes(0, 5) }
    var record: UnsafeBufferPointer<UInt8>? { result.bytes(0, 6) }
    var oldRecord: UnsafeBufferPointer<UInt8>? { result.bytes(0, 7) }
    var text: UnsafeBufferPointer<UInt8>? { result.bytes(0, 8) }
    var oldText: UnsafeBufferPointer<UInt8>? { result.bytes(0, 9) }
    /// The transaction that deleted the row.
    var deletion: WriterTransaction? { result.text(0, 10).flatMap { WriterTransaction($0) } }

    /// Nil if the row is not a change of a table's row.
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
    /// The content of a `roost.notify()` call, as a row of a table that does not exist.
    fileprivate func notification(at committed: UnsafeBufferPointer<UInt8>) -> RowChange {
        RowChange(
            id: id ?? 0, table: .notifications, operation: .insert, commitTimestamp: Timestamps.forClients(committed),
            committedAtMicroseconds: Timestamps.microseconds(committed), record: record.map { Array($0) },
            oldRecord: nil,
            isReduced: false)
    }
}

extension DatabaseBroadcast {
    /// Reads a row of `realtime.messages` as its trigger leaves it in the outbox (wire-protocol B); nil if the row has no
    /// topic and so is not a message.
    fileprivate init?(messageRow record: UnsafeBufferPointer<UInt8>) {
        let row: JSON
        do { row = try JSON(parsing: Array(record)) } catch { return nil }
        guard let topic = row["topic"]?.string, !topic.isEmpty else { return nil }
        let id = row["id"]?.string ?? ""
        let metadata = Array("{\"id\":".utf8) + JSONString.encode(id) + [UInt8(ascii: "}")]
        let user: UserBroadcast
        if let bytes = row["binary_payload"]?.string.flatMap({ Hexadecimal.parseBytea(Array($0.utf8)) }) {
            user = UserBroadcast(
                event: row["event"]?.string ?? "", encoding: .raw, payload: bytes[...], metadata: metadata)
        } else {
            user = UserBroadcast(
                event: row["event"]?.string ?? "", encoding: .json,
                payload: row["payload"]?.bytes ?? Array("{}".utf8)[...], metadata: metadata)
        }
        // A text broadcast has no limit of 255 bytes for topic or event, and every client reads its meta.
        let broadcast = user.encoding == .raw ? BroadcastMessage.user(user) : .text(user.textPayload() ?? [])
        let key = ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: row["private"]?.bool ?? false)
        self.init(key: key, id: id, broadcast: broadcast)
    }
}
