package import Wire

/// The order of a list of rows: columns, each ascending or descending, as in ORDER BY. NULL is greater than every
/// value.
///
/// RoostClient sorts numbers, booleans, UUIDs and times as Postgres does. Text is sorted by its bytes, as in the
/// collation `C`; order by such a column only if that is what you want, and give the column that collation if a list
/// has more rows than its limit.
public struct RowOrder: Sendable, Hashable {
    struct Term: Sendable, Hashable {
        let column: String
        let isDescending: Bool
    }

    let terms: [Term]

    /// The key's columns, ascending.
    public static var key: RowOrder { RowOrder(terms: []) }

    /// The lowest value of this column first.
    public static func ascending(_ column: String) -> RowOrder {
        RowOrder(terms: [Term(column: column, isDescending: false)])
    }

    /// The highest value of this column first.
    public static func descending(_ column: String) -> RowOrder {
        RowOrder(terms: [Term(column: column, isDescending: true)])
    }

    /// Rows that are equal in this order are sorted by the other one.
    public func then(_ other: RowOrder) -> RowOrder { RowOrder(terms: terms + other.terms) }

    /// The same order followed by the key's columns, so that no two rows have the same place.
    func totalOrder(by key: [String]) -> RowOrder {
        let isDescending = terms.last?.isDescending ?? false
        let missing = key.filter { name in !terms.contains { $0.column == name } }
        return RowOrder(terms: terms + missing.map { Term(column: $0, isDescending: isDescending) })
    }

    /// The order in the hub's syntax.
    var text: String { terms.map { $0.column + ($0.isDescending ? ".desc" : ".asc") }.joined(separator: ",") }

    /// Whether one place comes before the other.
    func isIncreasing(_ one: RowPlace, _ other: RowPlace) -> Bool {
        for (term, (left, right)) in zip(terms, zip(one.values, other.values)) where left != right {
            return (left < right) != term.isDescending
        }
        return false
    }
}

/// The values of a row's ordered columns.
package struct RowPlace: Sendable, Equatable {
    let values: [Value]

    /// - Parameter row: a JSON object; a column that it lacks counts as NULL.
    package init(of row: JSON, in order: RowOrder) {
        values = order.terms.map { Value(row[$0.column] ?? .null) }
    }

    /// A value that sorts as in Postgres. Numbers that JSON lacks come as text.
    enum Value: Sendable, Comparable {
        case lowest
        case bool(Bool)
        case number(Double, Int64?)
        case text([UInt8])
        case null

        init(_ json: JSON) {
            switch json.kind {
            case .null: self = .null
            case .bool: self = .bool(json.bool ?? false)
            case .number: self = .number(json.double ?? 0, Int64(json.description))
            case .string where json.bytes.elementsEqual("\"-Infinity\"".utf8): self = .lowest
            case .string: self = .text(Array((json.string ?? "").utf8))
            case .array, .object: self = .text(Array(json.bytes))
            }
        }

        private var rank: Int {
            switch self {
            case .lowest: 0
            case .bool: 1
            case .number: 2
            case .text: 3
            case .null: 4
            }
        }

        static func < (one: Value, other: Value) -> Bool {
            switch (one, other) {
            case (.bool(let left), .bool(let right)): !left && right
            case (.number(_, let left?), .number(_, let right?)): left < right
            case (.number(let left, _), .number(let right, _)): left < right
            case (.text(let left), .text(let right)): left.lexicographicallyPrecedes(right)
            default: one.rank < other.rank
            }
        }
    }
}
