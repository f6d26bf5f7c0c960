public import Foundation

/// Which rows of a table are followed: conditions that all have to hold, in the hub's grammar (wire-protocol A5). A column
/// that is null matches no condition but `is` and `isDistinct`.
public struct RowFilter: Sendable, Hashable {
    private struct Condition: Hashable {
        let column: String
        var isNegated = false
        /// The operator, a point and the value.
        let test: String

        var text: String { "\(column)=\(isNegated ? "not." : "")\(test)" }
    }

    /// A constant of SQL that `is` compares with.
    public enum Keyword: String, Sendable, CaseIterable {
        case null, `true`, `false`, unknown
    }

    private var conditions: [Condition]
    /// Conditions that were written by hand, with `raw`.
    private var texts: [String] = []

    /// The filter as the hub reads it.
    public var text: String { (conditions.map(\.text) + texts).joined(separator: ",") }

    private init(_ column: String, _ name: String, _ value: String) {
        conditions = [Condition(column: column, test: "\(name).\(value)")]
    }

    private init(_ conditions: [Condition], _ texts: [String] = []) {
        self.conditions = conditions
        self.texts = texts
    }

    /// A filter in the hub's own words, such as `id=gt.7,state=in.(new,open)`, of which nothing is quoted.
    public static func raw(_ text: String) -> RowFilter { RowFilter([], [text]) }

    /// The column equals this value.
    public static func eq(_ column: String, _ value: some FilterValue) -> RowFilter {
        RowFilter(column, "eq", quote(value.filterText))
    }

    /// The column is another value.
    public static func neq(_ column: String, _ value: some FilterValue) -> RowFilter {
        RowFilter(column, "neq", quote(value.filterText))
    }

    /// The column is less than this value.
    public static func lt(_ column: String, _ value: some FilterValue) -> RowFilter {
        RowFilter(column, "lt", quote(value.filterText))
    }

    /// The column is less than this value, or equals it.
    public static func lte(_ column: String, _ value: some FilterValue) -> RowFilter {
        RowFilter(column, "lte", quote(value.filterText))
    }

    /// The column is greater than this value.
    public static func gt(_ column: String, _ value: some FilterValue) -> RowFilter {
        RowFilter(column, "gt", quote(value.filterText))
    }

    /// The column is greater than this value, or equals it.
    public static func gte(_ column: String, _ value: some FilterValue) -> RowFilter {
        RowFilter(column, "gte", quote(value.filterText))
    }

    /// The column is another value, where null is a value like any other.
    public static func isDistinct(_ column: String, _ value: some FilterValue) -> RowFilter {
        RowFilter(column, "isdistinct", quote(value.filterText))
    }

    /// The column is one of these values, of which there may be 100.
    public static func `in`(_ column: String, _ values: [some FilterValue]) -> RowFilter {
        RowFilter(column, "in", "(\(values.map { quote($0.filterText) }.joined(separator: ",")))")
    }

    /// The column matches a pattern of SQL's LIKE: `%` stands for any text, `_` for any character.
    public static func like(_ column: String, _ pattern: String) -> RowFilter {
        RowFilter(column, "like", quote(pattern))
    }

    /// The column matches a pattern of SQL's ILIKE, which is LIKE whatever the case of letters.
    public static func ilike(_ column: String, _ pattern: String) -> RowFilter {
        RowFilter(column, "ilike", quote(pattern))
    }

    /// The column matches a regular expression of Postgres (`~`).
    public static func match(_ column: String, _ pattern: String) -> RowFilter {
        RowFilter(column, "match", quote(pattern))
    }

    /// The column matches a regular expression of Postgres, whatever the case of letters (`~*`).
    public static func imatch(_ column: String, _ pattern: String) -> RowFilter {
        RowFilter(column, "imatch", quote(pattern))
    }

    /// The column is this constant; all but `null` want a boolean column.
    public static func `is`(_ column: String, _ keyword: Keyword) -> RowFilter {
        RowFilter(column, "is", keyword.rawValue)
    }

    /// The opposite of one condition. The hub can negate one at a time, so a filter of none or several traps.
    public static func not(_ filter: RowFilter) -> RowFilter {
        precondition(
            filter.conditions.count == 1 && filter.texts.isEmpty, "The hub can negate one condition at a time.")
        return RowFilter(
            filter.conditions.map { Condition(column: $0.column, isNegated: !$0.isNegated, test: $0.test) })
    }

    /// All of these filters hold.
    public static func all(_ filters: [RowFilter]) -> RowFilter {
        RowFilter(filters.flatMap(\.conditions), filters.flatMap(\.texts))
    }

    /// Both filters hold.
    public func and(_ other: RowFilter) -> RowFilter { .all([self, other]) }

    /// The text, in quotes where the hub would take it for something of the grammar's own.
    private static func quote(_ text: String) -> String {
        let special = text.utf8.contains { [0x2C, 0x28, 0x29, 0x22, 0x5C].contains($0) }
        let scalars = text.unicodeScalars
        let isPadded =
            scalars.first?.properties.isWhitespace ?? true || scalars.last?.properties.isWhitespace ?? true
        guard special || isPadded else { return text }
        let escaped = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        return "\"\(escaped)\""
    }
}

/// A value that a column can be compared with.
public protocol FilterValue: Sendable {
    /// The value as Postgres reads it.
    var filterText: String { get }
}

extension String: FilterValue {
    public var filterText: String { self }
}

extension Bool: FilterValue {
    public var filterText: String { self ? "true" : "false" }
}

extension Double: FilterValue {
    /// Postgres writes it out: `NaN`, `Infinity`, `-Infinity`.
    public var filterText: String {
        if isNaN { return "NaN" }
        return isInfinite ? (self < 0 ? "-Infinity" : "Infinity") : description
    }
}

extension UUID: FilterValue {
    public var filterText: String { uuidString.lowercased() }
}

extension Date: FilterValue {
    public var filterText: String { PostgresTime.text(self) }
}

extension FilterValue where Self: FixedWidthInteger {
    public var filterText: String { String(self) }
}

extension Int: FilterValue {}
extension Int16: FilterValue {}
extension Int32: FilterValue {}
extension Int64: FilterValue {}
