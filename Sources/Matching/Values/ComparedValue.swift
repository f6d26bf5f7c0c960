/// A value in the form the hub compares and hashes it: two values of one column are equal in Postgres exactly when
/// these are.
enum ComparedValue: Hashable, Sendable {
    /// Booleans, dates, timestamps and floats, as numbers in the same order.
    case ordinal(Int64)
    case decimal(ExactDecimal)
    case uuid(UInt128)
    /// Text, and the output of types that have one output per value. Bytes: Swift's strings would call texts equal that
    /// Postgres tells apart.
    case bytes([UInt8])

    /// A double as a number in the same order: NaN equal to itself and above everything, the two zeros equal.
    static func float(_ value: Double) -> ComparedValue {
        if value.isNaN { return .ordinal(.max) }
        if value == 0 { return .ordinal(0) }
        let size = Int64(bitPattern: value.magnitude.bitPattern)
        return .ordinal(value < 0 ? -size : size)
    }

    static let infinity = ComparedValue.ordinal(.max)
    static let negativeInfinity = ComparedValue.ordinal(.min)

    /// Whether the value sorts before `other`, a value of the same column.
    func precedes(_ other: ComparedValue) -> Bool {
        switch (self, other) {
        case (.ordinal(let one), .ordinal(let other)): one < other
        case (.decimal(let one), .decimal(let other)): one < other
        case (.uuid(let one), .uuid(let other)): one < other
        case (.bytes(let one), .bytes(let other)): one.lexicographicallyPrecedes(other)
        // Both came through the same column's reader.
        default: false
        }
    }
}
