import Foundation
import Synchronization
package import Wire

/// A row change as it arrived (wire-protocol A5), with undecoded rows.
package struct IncomingChange: Sendable {
    package let kind: ChangeKind
    package let schema: String
    package let table: String
    /// The new row; nil for a delete.
    package let record: JSON?
    /// The old row, as far as the hub knows it.
    package let old: JSON?
    /// The position after this change, for resuming.
    package let cursor: String?
    /// The time of the commit, in UTC: `YYYY-MM-DDTHH:MM:SS.mmmZ`. The length is fixed, so texts compare like times.
    package let commitTime: String?
    /// Parts of the row that the hub could not send.
    package let errors: [String]
    /// The whole change as the hub sent it.
    package let data: JSON
    /// True for a row of a list's initial reading, which is not a change.
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

    /// Parses the payload of a `postgres_changes` frame into the change and the hub's IDs of its subscriptions. Nil if
    /// it contains no change.
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

/// An element in the buffer of a change sequence.
package enum ChangeSignal: Sendable {
    case change(IncomingChange)
    /// The hub could not resume: the data has to be loaded again.
    case expired(reason: String)
}

/// Converts incoming changes to typed ones for one sequence, and drops repeats.
///
/// For each row (`RowKey`) the newest delivered version is remembered. A change is dropped if it is that version or an
/// older one (`ChangeVersion`). A change whose row cannot be identified is dropped only if the very same change was
/// delivered. After a reload because the hub could not resume, nothing is remembered.
package final class ChangeReader<Row: Decodable & Sendable>: Sendable {
    private let memory: Mutex<RowMemory>
    private let key: RowKey<Row>
    private let decoder: JSONDecoder

    package init(_ key: RowKey<Row>, _ configuration: RoostClient.Configuration) {
        self.key = key
        decoder = configuration.decoder
        memory = Mutex(RowMemory(limit: configuration.dedupeLimit))
    }

    /// Identifies a change whose row cannot be identified.
    private struct Unknown: Hashable {
        let number: Int64?
        let fingerprint: Int
    }

    /// The change for the consumer; nil for a repeat.
    package func nextChange(_ delivery: Mailbox<ChangeSignal>.Delivery) -> Change<Row>? {
        switch delivery {
        case .missed(let count): return .reload(.overflow(dropped: count))
        case .element(.expired(let reason)):
            memory.withLock { $0.forgetRows() }
            return .reload(.expired(reason: reason))
        case .element(.change(let change)): return makeChange(change)
        }
    }

    private func makeChange(_ change: IncomingChange) -> Change<Row>? {
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
