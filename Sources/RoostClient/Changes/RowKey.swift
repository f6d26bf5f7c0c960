import Foundation
import Wire

/// What tells one row from another, so that repeats are known as such.
public struct RowKey<Row: Sendable>: Sendable {
    /// From the change, and its row (of a delete the old row) where it could be read. Nil where it cannot be told.
    let identity: @Sendable (RowChange, Row?, JSONDecoder) -> RowIdentity?

    /// These columns, by their names in Postgres. Exact for every change, deletes as well.
    public static func columns(_ names: String...) -> RowKey {
        RowKey { change, _, _ in
            guard let row = change.kind == .delete ? change.old : change.record else { return nil }
            let values = names.compactMap { row[$0]?.description }
            return values.count == names.count ? RowIdentity(values) : nil
        }
    }

    /// A property of the row. Of a delete it is known only where the old row can be read as `Row`.
    public static func path<Key: Hashable & Sendable>(_ path: any KeyPath<Row, Key> & Sendable) -> RowKey {
        by { $0[keyPath: path] }
    }

    /// As `path`, by a closure.
    public static func by<Key: Hashable & Sendable>(_ key: @escaping @Sendable (Row) -> Key) -> RowKey {
        RowKey { _, row, _ in row.map { RowIdentity(key($0)) } }
    }

    /// Nothing: only a change that comes again unchanged is known as a repeat.
    public static var none: RowKey { RowKey { _, _, _ in nil } }
}

extension RowKey where Row: Identifiable, Row.ID: Sendable & Decodable {
    /// The row's `id`. Of a delete: the `id` of the old row where it can be read as `Row`, otherwise its only column.
    public static var id: RowKey {
        RowKey { change, row, decoder in
            if let row { return RowIdentity(row.id) }
            guard change.kind == .delete, let old = change.old else { return nil }
            var columns: [JSON] = []
            old.forEachMember { columns.append($0.value) }
            guard columns.count == 1 else { return nil }
            do throws(RoostError) {
                return RowIdentity(try decoder.roostDecode(Row.ID.self, from: Data(columns[0].bytes)))
            } catch {
                return nil
            }
        }
    }
}
