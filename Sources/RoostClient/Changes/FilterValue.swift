public import Foundation

/// What a column can be compared with.
public protocol FilterValue: Sendable {
    /// As Postgres reads it.
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
