public import Foundation

/// The rows of a table to follow: conditions that all have to hold, in the hub's grammar (wire-protocol A5). A column
/// that is null matches only `is` and `isDistinct`.
public struct RowFilter: Sendable, Hashable {
    private struct Condition: Hashable {
        let column: String
        var isNegated = false
        /// The operator, a dot and the value.
        let test: String

        var text: String { "\(column)=\(isNegated ? "not." : "")\(test)" }
    }

    /// An SQL constant for `is`.
    public enum Keyword: String, Sendable, CaseIterable {
        case null, `true`, `false`, unknown
    }

    private var conditions: [Condition]
    /// Conditions in the hub's own syntax, from `raw`.
    private var texts: [String] = []

    /// The filter in the hub's syntax.
    public var text: String { (conditions.map(\.text) + texts).joined(separator: ",") }

    private init(_ column: String, _ name: String, _ value: String) {
        conditions = [Condition(column: column, test: "\(name).\(value)")]
    }

    private init(_ conditions: [Condition], _ texts: [String] = []) {
        self.conditions = conditions
        self.texts = texts
    }

    /// A filter in the hub's own syntax, such as `id=gt.7,state=in.(new,open)`. Nothing in it is quoted.
    public static func raw(_ text: String) -> RowFilter { RowFilter([], [text]) }

    /// The column equals this value.
    public static func eq(_ column: String, _ value: some FilterValue) -> RowFilter {
        RowFilter(column, "eq", quote(value.filterText))
    }

    /// The column has another value.
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

    /// The column has another value; null counts as a value like any other.
    public static func isDistinct(_ column: String, _ value: some FilterValue) -> RowFilter {
        RowFilter(column, "isdistinct", quote(value.filterText))
    }

    /// The column is one of these values, at most 100.
    public static func `in`(_ column: String, _ values: [some FilterValue]) -> RowFilter {
        RowFilter(column, "in", "(\(values.map { quote($0.filterText) }.joined(separator: ",")))")
    }

    /// The column matches an SQL LIKE pattern: `%` stands for any text, `_` for any character.
    public static func like(_ column: String, _ pattern: String) -> RowFilter {
        RowFilter(column, "like", quote(pattern))
    }

    /// The column matches an SQL ILIKE pattern, which is LIKE without regard to case.
    public static func ilike(_ column: String, _ pattern: String) -> RowFilter {
        RowFilter(column, "ilike", quote(pattern))
    }

    /// The column matches a Postgres regular expression (`~`).
    public static func match(_ column: String, _ pattern: String) -> RowFilter {
        RowFilter(column, "match", quote(pattern))
    }

    /// The column matches a Postgres regular expression, without regard to case (`~*`).
    public static func imatch(_ column: String, _ pattern: String) -> RowFilter {
        RowFilter(column, "imatch", quote(pattern))
    }

    /// The column is this constant; all but `null` require a boolean column.
    public static func `is`(_ column: String, _ keyword: Keyword) -> RowFilter {
        RowFilter(column, "is", keyword.rawValue)
    }

    /// Negates one condition. The hub can negate only single conditions, so a filter of none or several traps.
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

    /// Quotes a text that the hub would otherwise take for syntax.
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

/// A value to compare a column with.
public protocol FilterValue: Sendable {
    /// The value in Postgres' syntax.
    var filterText: String { get }
}

extension String: FilterValue {
    public var filterText: String { self }
}

extension Bool: FilterValue {
    public var filterText: String { self ? "true" : "false" }
}

extension Double: FilterValue {
    /// In Postgres' spelling: `NaN`, `Infinity`, `-Infinity`.
    public var filterText: String {
        if isNaN { return "NaN" }
        return isInfinite ? (self < 0 ? "-Infinity" : "Infinity") : description
    }
}

extension UUID: FilterValue {
    public var filterText: String { uuidString.lowercased() }
}

extension Date: FilterValue {
    public var filterText: String { PostgresTime.formatDate(self) }
}

extension FilterValue where Self: FixedWidthInteger {
    public var filterText: String { String(self) }
}

extension Int: FilterValue {}
extension Int16: FilterValue {}
extension Int32: FilterValue {}
extension Int64: FilterValue {}
