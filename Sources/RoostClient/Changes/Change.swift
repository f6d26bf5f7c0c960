public import Foundation

extension Channel {
    /// The changes of a table's rows, each once, those of one row in their order.
    ///
    /// What happens from this call on is kept for the loop that reads it, up to `Configuration.bufferLimit` changes;
    /// the hub sends it once the channel is subscribed. A sequence that is made while the channel is joined may begin
    /// with changes of shortly before. After a loss of the connection the hub brings what was missed; where it cannot,
    /// the sequence says `.reload`.
    ///
    /// Ends when the channel is left. Throws when the hub cannot serve these changes, or ends the channel for good.
    ///
    /// - Parameters:
    ///   - type: what a row is decoded to, by `Configuration.decoder`.
    ///   - table: the table's name as Postgres writes it; `*` for all of the schema.
    ///   - schema: the schema's name as Postgres writes it; `*` for all.
    ///   - filter: which rows are followed; the hub does not send others.
    ///   - kind: only inserts, updates or deletes; nil for all three.
    ///   - key: what tells rows apart.
    public func changes<Row: Decodable & Sendable>(
        of type: Row.Type, in table: String, schema: String = "public", where filter: RowFilter? = nil,
        only kind: ChangeKind? = nil, key: RowKey<Row>
    ) -> Changes<Row> {
        let mailbox = Mailbox<ChangeSignal>(limit: core.configuration.bufferLimit, .all)
        let binding = ChangeRequest(schema: schema, table: table, kind: kind, filter: filter?.text)
        let lease = attach(.changes(mailbox), binding)
        let reader = ChangeReader(key, core.configuration)
        return RoostThrowingSequence { () async throws(RoostError) in
            try await mailbox.next(lease, reader.read)
        }
    }

    /// The changes of a table's rows, each once, for rows that are told apart by their `id`. Everything else is as in
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

/// Something that happened to the rows that a sequence follows.
public enum Change<Row: Sendable>: Sendable {
    case insert(Row, ChangeInfo)
    case update(Row, old: OldRow, ChangeInfo)
    case delete(OldRow, ChangeInfo)
    /// Something was missed that nobody can bring any more: load the rows again, and go on with the loop.
    case reload(ReloadReason)
    /// A row changed that cannot be read as `Row`, or that the hub could not send whole: read it from the database.
    case unreadable(UnreadableRow)
}

/// Why rows have to be loaded again: something was missed that nobody can bring any more.
public enum ReloadReason: Sendable, Equatable {
    /// The hub cannot resume where this client was. The reason is one sentence of the hub's.
    case expired(reason: String)
    /// The consumer was too slow for the buffer, from which so many changes were dropped.
    case overflow(dropped: Int)
}

/// What happened to a row.
public enum ChangeKind: String, Sendable, CaseIterable {
    case insert = "INSERT"
    case update = "UPDATE"
    case delete = "DELETE"
}

/// Where a change comes from.
public struct ChangeInfo: Sendable, Equatable {
    public let schema: String
    public let table: String
    /// When the change was committed, to the millisecond.
    public let commitTime: Date?
    /// Where to resume behind this change, for `ChannelConfiguration.resumeFrom`. The text means nothing to a client.
    public let cursor: String?

    init(_ change: IncomingChange) {
        schema = change.schema
        table = change.table
        commitTime = change.commitTime.flatMap(PostgresTime.date)
        cursor = change.cursor
    }
}

/// A row as it was before a change. Which of its columns are there depends on the table: the primary key always, under
/// row level security nothing else.
public struct OldRow: Sendable, Equatable {
    /// The row, as the text of a JSON object.
    public let json: Data
    let decoder: JSONDecoder

    /// The value of one column; nil where it is not there or is not of that type.
    public func value<Value: Decodable>(_ column: String, as type: Value.Type) -> Value? {
        do throws(RoostError) {
            return try decoder.roostDecode([String: Column<Value>].self, from: json)[column]?.value
        } catch {
            return nil
        }
    }

    /// Reads the row, where all columns that `Row` wants are there.
    public func decode<Row: Decodable>(as type: Row.Type) throws(RoostError) -> Row {
        try decoder.roostDecode(type, from: json)
    }

    public static func == (left: OldRow, right: OldRow) -> Bool { left.json == right.json }

    /// A column of another type than the one that is looked for must not be in its way.
    private struct Column<Value: Decodable>: Decodable {
        let value: Value?

        init(from decoder: any Decoder) throws {
            do { value = try decoder.singleValueContainer().decode(Value.self) } catch { value = nil }
        }
    }
}

/// A change whose row cannot be handed on as the type that was asked for.
public struct UnreadableRow: Sendable, Equatable {
    public let kind: ChangeKind
    public let info: ChangeInfo
    /// What came of the row, as the text of a JSON object. The primary key is in it if the hub knows it.
    public let json: Data
    /// Why the row cannot be read, in one sentence.
    public let reason: String
}
