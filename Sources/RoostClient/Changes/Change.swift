public import Foundation

extension Channel {
    /// The changes of a table's rows, each once, and those of one row in order.
    ///
    /// Changes from this call on are buffered for the loop that reads them, up to `Configuration.bufferLimit`; the hub
    /// sends them once the channel is subscribed. A sequence that is created while the channel is joined may begin with
    /// changes from shortly before. After a loss of the connection the hub sends what was missed; if it cannot, the
    /// sequence yields `.reload`.
    ///
    /// Ends when the channel is left. Throws when the hub cannot serve these changes, or ends the channel for good.
    ///
    /// - Parameters:
    ///   - type: the type that rows are decoded to, by `Configuration.decoder`.
    ///   - table: the table's name as Postgres writes it; `*` for all tables of the schema.
    ///   - schema: the schema's name as Postgres writes it; `*` for all.
    ///   - filter: the rows to follow; the hub sends no others.
    ///   - kind: only inserts, updates or deletes; nil for all three.
    ///   - key: identifies rows.
    public func changes<Row: Decodable & Sendable>(
        of type: Row.Type, in table: String, schema: String = "public", where filter: RowFilter? = nil,
        only kind: ChangeKind? = nil, key: RowKey<Row>
    ) -> Changes<Row> {
        let mailbox = Mailbox<ChangeSignal>(limit: core.configuration.bufferLimit, .all)
        let binding = ChangeRequest(schema: schema, table: table, kind: kind, filter: filter?.text)
        let lease = attachSink(.changes(mailbox), binding)
        let reader = ChangeReader(key, core.configuration)
        return RoostThrowingSequence { () async throws(RoostError) in
            try await mailbox.nextValue(lease, reader.nextChange)
        }
    }

    /// The changes of a table's rows, each once, for rows that are identified by their `id`. Everything else is as in
    /// ``changes(of:in:schema:where:only:key:)``.
    public func changes<Row: Decodable & Identifiable & Sendable>(
        of type: Row.Type, in table: String, schema: String = "public", where filter: RowFilter? = nil,
        only kind: ChangeKind? = nil
    ) -> Changes<Row> where Row.ID: Sendable & Decodable {
        changes(of: type, in: table, schema: schema, where: filter, only: kind, key: .id)
    }
}

/// The changes of a table's rows. Ends when the channel is left; throws when it cannot go on.
public typealias Changes<Row: Sendable> = RoostThrowingSequence<Change<Row>>

/// An event of the rows that a sequence follows.
public enum Change<Row: Sendable>: Sendable {
    case insert(Row, ChangeInfo)
    case update(Row, old: OldRow, ChangeInfo)
    case delete(OldRow, ChangeInfo)
    /// Changes were missed and cannot be recovered: load the rows again, and continue the loop.
    case reload(ReloadReason)
    /// A row changed that cannot be decoded as `Row`, or that the hub could not send whole: read it from the database.
    case unreadable(UnreadableRow)
}

/// The reason why rows have to be loaded again: changes were missed and cannot be recovered.
public enum ReloadReason: Sendable, Equatable {
    /// The hub cannot resume at this client's position. The reason is one sentence from the hub.
    case expired(reason: String)
    /// The consumer was too slow for the buffer, and this many changes were dropped.
    case overflow(dropped: Int)
}

/// The kind of a change.
public enum ChangeKind: String, Sendable, CaseIterable {
    case insert = "INSERT"
    case update = "UPDATE"
    case delete = "DELETE"
}

/// The origin of a change.
public struct ChangeInfo: Sendable, Equatable {
    public let schema: String
    public let table: String
    /// The time of the commit, in milliseconds.
    public let commitTime: Date?
    /// The position after this change, for `ChannelConfiguration.resumeFrom`. Opaque to clients.
    public let cursor: String?

    init(_ change: IncomingChange) {
        schema = change.schema
        table = change.table
        commitTime = change.commitTime.flatMap(PostgresTime.parseDate)
        cursor = change.cursor
    }
}

/// A row as it was before a change. The table determines which columns are present: the primary key always, and with
/// row level security only that.
public struct OldRow: Sendable, Equatable {
    /// The row, as the text of a JSON object.
    public let json: Data
    let decoder: JSONDecoder

    /// The value of one column; nil if it is missing or has another type.
    public func value<Value: Decodable>(_ column: String, as type: Value.Type) -> Value? {
        do throws(RoostError) {
            return try decoder.roostDecode([String: Column<Value>].self, from: json)[column]?.value
        } catch {
            return nil
        }
    }

    /// Decodes the row, if all columns that `Row` needs are present.
    public func decode<Row: Decodable>(as type: Row.Type) throws(RoostError) -> Row {
        try decoder.roostDecode(type, from: json)
    }

    public static func == (left: OldRow, right: OldRow) -> Bool { left.json == right.json }

    /// Decodes a column leniently: columns of other types than the requested one must not cause errors.
    private struct Column<Value: Decodable>: Decodable {
        let value: Value?

        init(from decoder: any Decoder) throws {
            do { value = try decoder.singleValueContainer().decode(Value.self) } catch { value = nil }
        }
    }
}

/// A change whose row cannot be decoded as the requested type.
public struct UnreadableRow: Sendable, Equatable {
    public let kind: ChangeKind
    public let info: ChangeInfo
    /// The parts of the row that arrived, as the text of a JSON object. Includes the primary key if the hub knows it.
    public let json: Data
    /// The reason why the row cannot be decoded, in one sentence.
    public let reason: String
}
