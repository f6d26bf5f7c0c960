import Hub

/// Takes the rows of one window as they arrive and hands them on in batches.
final class WindowReader {
    private static let batchRows = 256
    private static let batchBytes = 262_144

    /// What was handed on, in order.
    private(set) var handed: [HandedChanges.Key] = []
    /// Changes that belong to no watched table, by table.
    private(set) var orphans: [UInt32: Int] = [:]
    /// A table that the catalog does not know, or knows otherwise than the record shows it.
    private(set) var puzzling: UInt32?
    private(set) var isComplete = false

    private let consumer: any FeedConsumer
    private let catalog: Catalog
    private let settled: [UInt32: Table?]
    private let mayAskAgain: Bool
    private let skip: Set<HandedChanges.Key>
    private var snapshot: Snapshot?
    private var batch: [RowChange] = []
    private var batchKeys: [HandedChanges.Key] = []
    private var bytes = 0

    /// - Parameters:
    ///   - settled: tables for which reading the catalog anew would tell no more, as they were described before.
    ///   - mayAskAgain: whether the catalog may be read once more for a record it does not fit.
    ///   - skip: what was handed on before the connection broke.
    init(
        consumer: any FeedConsumer, catalog: Catalog, settled: [UInt32: Table?], mayAskAgain: Bool,
        skip: Set<HandedChanges.Key>
    ) {
        self.consumer = consumer
        self.catalog = catalog
        self.settled = settled
        self.mayAskAgain = mayAskAgain
        self.skip = skip
    }

    /// - Returns: false when the rest of the window is of no use yet.
    func take(_ row: QueryResult) throws -> Bool {
        guard let at = row.bytes(0, 4) else { throw PostgresError(.server, "A change has no time.") }
        let id = row.integer(0, 0) ?? 0
        guard id > 0 else {
            snapshot = Snapshot(String(decoding: at, as: UTF8.self))
            if snapshot == nil { throw PostgresError(.server, "Postgres sent a snapshot the hub cannot read.") }
            return true
        }
        let key = HandedChanges.Key(id: id, writtenAt: Timestamps.fingerprint(at))
        if !skip.isEmpty, skip.contains(key) { return true }
        return add(row, id: id, key: key, at: row.bytes(0, 5) ?? at)
    }

    private func add(
        _ row: QueryResult, id: Int64, key: HandedChanges.Key, at: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        let oid = UInt32(row.integer(0, 1) ?? 0)
        let isReduced = row.flag(0, 3)
        let record = row.bytes(0, 6)
        let old = row.bytes(0, 7)
        guard var table = catalog.table(oid) else {
            guard settled[oid] != nil else { return giveUp(on: oid) }
            orphans[oid, default: 0] += 1
            return true
        }
        if let any = record ?? old, !isReduced, !catalog.describes(any, of: oid) {
            guard let older = settled[oid] else { return giveUp(on: oid) }
            let fitting = table.restricted(to: any, older: older)
            // Altered again since the catalog was read.
            if mayAskAgain, fitting.columns.count < RecordKeys.all(of: any).count { return giveUp(on: oid) }
            table = fitting
        }
        batch.append(
            RowChange(
                id: id, table: table, operation: operation(row.bytes(0, 2)?.first),
                commitTimestamp: Timestamps.forClients(at), record: record.map { Array($0) },
                oldRecord: old.map { Array($0) },
                isReduced: isReduced))
        batchKeys.append(key)
        bytes += (record?.count ?? 0) + (old?.count ?? 0)
        if batch.count >= Self.batchRows || bytes >= Self.batchBytes { flush() }
        return true
    }

    private func giveUp(on oid: UInt32) -> Bool {
        puzzling = oid
        return false
    }

    /// - Returns: the cursor after this window, or nil where a table puzzles.
    func finish() -> Snapshot? {
        flush()
        guard puzzling == nil, let snapshot else { return nil }
        isComplete = true
        return snapshot
    }

    /// What was taken for a leftover was none: the window has to be read again.
    func reopen() { isComplete = false }

    private func flush() {
        guard !batch.isEmpty else { return }
        consumer.consume(batch)
        handed += batchKeys
        batch.removeAll(keepingCapacity: true)
        batchKeys.removeAll(keepingCapacity: true)
        bytes = 0
    }

    private func operation(_ letter: UInt8?) -> RowChange.Operation {
        switch letter {
        case UInt8(ascii: "I"): .insert
        case UInt8(ascii: "D"): .delete
        default: .update
        }
    }
}
