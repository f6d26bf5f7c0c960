import Matching
import Postgres

/// Rows that are put back while deleted rows are judged: rows of the same transaction, which decide who could see them
/// (SchemaVisibility.sql).
package struct Revival: Hashable, Sendable {
    let transaction: WriterTransaction
    /// By oid, ascending.
    let tables: [UInt32]

    /// If a transaction deleted more from a table, nothing of it is put back: that would be repeated for each batch of its
    /// rows.
    static let mostRows = 2000

    /// Ends in one row, with what was left out.
    var sql: String {
        let place = transaction.place.map { SQLText.literal($0.text) } ?? "null"
        let oids = tables.map(String.init).joined(separator: ",")
        return "select roost.revive('\(transaction.id)',\(place),'{\(oids)}',\(Self.mostRows));"
    }

    /// Rows that could not be put back, and the reason.
    struct Omission {
        let isLock: Bool
        /// A table and the reason.
        let text: String

        init(_ line: Substring) {
            isLock = line.hasPrefix("lock ")
            text = line.split(separator: " ", maxSplits: 1).last.map(String.init) ?? ""
        }
    }
}

extension PolicyEngine {
    /// The tables from which transactions deleted rows that can be put back.
    ///
    /// - Throws: the same errors as `answers`.
    mutating func deletedTables(
        by transactions: [WriterTransaction], version: String
    ) throws(PostgresError) -> [WriterTransaction: Set<UInt32>] {
        try readCatalog(version) { session in try session.deletedTables(by: transactions) }
    }
}

extension PolicySession {
    fileprivate func deletedTables(by transactions: [WriterTransaction]) throws -> [WriterTransaction: Set<UInt32>] {
        let ids = "{" + transactions.map { String($0.id) }.joined(separator: ",") + "}"
        let places = "{" + transactions.map { $0.place?.text ?? "null" }.joined(separator: ",") + "}"
        let rows = try query(PolicySQL.deletedTables, [ids, places, String(Revival.mostRows)])
        var found: [WriterTransaction: Set<UInt32>] = Dictionary(
            transactions.map { ($0, []) }, uniquingKeysWith: { one, _ in one })
        for row in 0..<rows.count {
            guard let number = rows.integer(row, 0).map({ Int($0) - 1 }), transactions.indices.contains(number),
                let oid = rows.text(row, 1).flatMap({ UInt32($0) })
            else { continue }
            found[transactions[number], default: []].insert(oid)
        }
        return found
    }
}
