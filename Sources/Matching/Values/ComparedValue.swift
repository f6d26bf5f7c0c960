import Wire

/// A value in the form that the hub compares and hashes: two values of one column are equal in Postgres exactly if these
/// are.
enum ComparedValue: Hashable, Sendable {
    /// Booleans, dates, timestamps and floats, as numbers in the same order.
    case ordinal(Int64)
    case decimal(ExactDecimal)
    case uuid(UInt128)
    /// Text, and the output of types that have one output per value. Bytes, because Swift's strings treat as equal some
    /// texts that Postgres distinguishes.
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

    /// True if the value sorts before `other`, a value of the same column.
    func precedes(_ other: ComparedValue) -> Bool {
        switch (self, other) {
        case (.ordinal(let one), .ordinal(let other)): one < other
        case (.decimal(let one), .decimal(let other)): one < other
        case (.uuid(let one), .uuid(let other)): one < other
        case (.bytes(let one), .bytes(let other)): one.lexicographicallyPrecedes(other)
        // Unreachable: both came from the same column's reader.
        default: false
        }
    }
}

/// Reads a value from a record: JSON as `row_to_json` and `to_json` write it.
enum CellReader {
    /// Nil if the column's type would not write such a text; then Postgres has to decide.
    static func readCell(_ cell: ArraySlice<UInt8>, of column: Column) -> ComparedValue? {
        let json = JSON(trusted: cell)
        switch column.comparison {
        case .decimal: return readDecimal(json)
        case .float: return readFloat(json, isSingle: column.type == "float4")
        case .boolean: return json.bool.map { .ordinal($0 ? 1 : 0) }
        case .text, .textByBytes: return readText(json).map(ComparedValue.bytes)
        case .uuid: return readText(json).flatMap(UUIDText.parse).map(ComparedValue.uuid)
        case .date, .timestamp, .timestamptz: return readMoment(json, column.comparison)
        case .canonical: return readCanonical(json)
        case .postgres: return nil
        }
    }

    private static func readDecimal(_ json: JSON) -> ComparedValue? {
        if json.kind == .number { return ExactDecimal(json.bytes).map(ComparedValue.decimal) }
        switch json.string {
        case "NaN": return .decimal(.nan)
        case "Infinity": return .decimal(.infinity)
        case "-Infinity": return .decimal(.negativeInfinity)
        // An oid is written as a string.
        default: return readText(json).flatMap { ExactDecimal($0) }.map(ComparedValue.decimal)
        }
    }

    private static func readFloat(_ json: JSON, isSingle: Bool) -> ComparedValue? {
        let text = json.kind == .number ? String(decoding: json.bytes, as: UTF8.self) : json.string
        guard let text else { return nil }
        // A real equals its decimal text rounded to a real, not to a double.
        return isSingle ? Float(text).map { .float(Double($0)) } : Double(text).map { .float($0) }
    }

    private static func readMoment(_ json: JSON, _ comparison: Comparison) -> ComparedValue? {
        guard let text = readText(json) else { return nil }
        if text.elementsEqual("infinity".utf8) { return .infinity }
        if text.elementsEqual("-infinity".utf8) { return .negativeInfinity }
        return ISOMoment(text)?.value(as: comparison)
    }

    /// Scalars only: their JSON is the type's output.
    private static func readCanonical(_ json: JSON) -> ComparedValue? {
        switch json.kind {
        case .string: readText(json).map(ComparedValue.bytes)
        case .number, .bool: .bytes(Array(json.bytes))
        case .object, .array, .null: nil
        }
    }

    /// The bytes of a string.
    private static func readText(_ json: JSON) -> [UInt8]? {
        guard json.kind == .string else { return nil }
        let raw = json.bytes.dropFirst().dropLast()
        return raw.contains(UInt8(ascii: "\\")) ? Array(JSONString.decode(raw).utf8) : Array(raw)
    }
}
