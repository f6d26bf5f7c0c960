import Foundation
import Synchronization
package import Wire

/// A row change as it arrived (wire-protocol A5). Its rows are not decoded yet.
package struct IncomingChange: Sendable {
    package let kind: ChangeKind
    package let schema: String
    package let table: String
    /// The row as it is; nil of a delete.
    package let record: JSON?
    /// The row as it was, as far as the hub knows it.
    package let old: JSON?
    /// Where to resume behind this change.
    package let cursor: String?
    /// When it was committed, in UTC: `YYYY-MM-DDTHH:MM:SS.mmmZ`. Of one length, so the later text is the later time.
    package let commitTime: String?
    /// What the hub could not send of the row.
    package let errors: [String]
    /// All that the hub says of the change.
    package let data: JSON
    /// It is a row that was there when a list was read, and no change.
    package let isSnapshot: Bool

    package init(
        kind: ChangeKind, schema: String, table: String, record: JSON?, old: JSON?, cursor: String?,
        commitTime: String?, errors: [String], data: JSON, isSnapshot: Bool = false
    ) {
        self.kind = kind
        self.schema = schema
        self.table = table
        self.record = record
        self.old = old
        self.cursor = cursor
        self.commitTime = commitTime
        self.errors = errors
        self.data = data
        self.isSnapshot = isSnapshot
    }

    /// The change in the payload of a `postgres_changes` frame, and the hub's ids of the subscriptions that it is for. Nil
    /// where there is none in it.
    package static func parse(_ payload: JSON) -> (ids: [Int], IncomingChange)? {
        guard let data = payload["data"], let kind = data["type"]?.string.flatMap(ChangeKind.init) else { return nil }
        let change = IncomingChange(
            kind: kind, schema: data["schema"]?.string ?? "", table: data["table"]?.string ?? "",
            record: data["record"], old: data["old_record"], cursor: payload["cursor"]?.string,
            commitTime: data["commit_timestamp"]?.string,
            errors: data["errors"]?.elements.compactMap(\.string) ?? [], data: data,
            isSnapshot: payload["snapshot"]?.bool ?? false)
        return (payload["ids"]?.elements.compactMap(\.int) ?? [], change)
    }
}

/// What goes through the buffer of a change sequence.
package enum ChangeSignal: Sendable {
    case change(IncomingChange)
    /// The hub could not resume: the data has to be loaded again.
    case expired(reason: String)
}

/// Makes typed changes of what arrived, for one sequence, and drops repeats.
///
/// The rule: of each row (`RowKey`) the newest version that was handed on is remembered. A change is dropped if it is
/// that version or an older one (`ChangeVersion`). A change whose row cannot be told is dropped only if that very
/// change was handed on. After a reload for which the hub could not resume, nothing is remembered.
package final class ChangeReader<Row: Decodable & Sendable>: Sendable {
    private let memory: Mutex<RowMemory>
    private let key: RowKey<Row>
    private let decoder: JSONDecoder

    package init(_ key: RowKey<Row>, _ configuration: RoostClient.Configuration) {
        self.key = key
        decoder = configuration.decoder
        memory = Mutex(RowMemory(limit: configuration.dedupeLimit))
    }

    /// What a change is known by where its row cannot be told.
    private struct Unknown: Hashable {
        let number: Int64?
        let fingerprint: Int
    }

    /// The change for the consumer; nil for a repeat.
    package func read(_ delivery: Mailbox<ChangeSignal>.Delivery) -> Change<Row>? {
        switch delivery {
        case .missed(let count): return .reload(.overflow(dropped: count))
        case .element(.expired(let reason)):
            memory.withLock { $0.forget() }
            return .reload(.expired(reason: reason))
        case .element(.change(let change)): return read(change)
        }
    }

    private func read(_ change: IncomingChange) -> Change<Row>? {
        let json = change.kind == .delete ? change.old : change.record
        let info = ChangeInfo(change)
        var row: Row?
        var reason = change.errors.isEmpty ? "The hub sent no row." : change.errors.joined(separator: " ")
        if let json, change.errors.isEmpty {
            do throws(RoostError) { row = try decoder.roostDecode(Row.self, from: Data(json.bytes)) } catch {
                reason = error.description
            }
        }
        let version = ChangeVersion(change)
        let identity =
            key.identity(change, row, decoder)
            ?? RowIdentity(Unknown(number: version.number, fingerprint: version.fingerprint))
        guard memory.withLock({ $0.isNews(identity, version) }) else { return nil }

        let old = OldRow(json: Data(change.old?.bytes ?? Array("{}".utf8)[...]), decoder: decoder)
        switch (change.kind, row) {
        case (.insert, let row?): return .insert(row, info)
        case (.update, let row?): return .update(row, old: old, info)
        case (.delete, _) where change.errors.isEmpty && change.old != nil: return .delete(old, info)
        default:
            return .unreadable(
                UnreadableRow(
                    kind: change.kind, info: info, json: Data(json?.bytes ?? Array("{}".utf8)[...]), reason: reason))
        }
    }
}
