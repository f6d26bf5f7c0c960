import Wire

/// Reads a filter's value as the input function of the column's type does, if the hub is certain to do it the same way.
enum FilterValueReader {
    enum Reading: Equatable {
        case value(ComparedValue)
        /// Postgres would refuse the value; the reason completes a sentence after the value.
        case invalid(String)
        /// Postgres may accept the value, so it has to validate it.
        case unsure
    }

    static func readValue(_ text: String, for column: Column) -> Reading {
        let bytes = Array(text.utf8)
        switch column.comparison {
        case .decimal: return readDecimal(trimSpace(bytes), type: column.type.text)
        case .float: return readFloat(trimSpace(bytes), type: column.type.text)
        case .text, .textByBytes:
            // Postgres truncates a name to 63 bytes.
            return column.type == "name" && bytes.count > 63 ? .unsure : .value(.bytes(bytes))
        case .uuid:
            return UUIDText.parse(bytes).map { .value(.uuid($0)) } ?? .invalid("is not a valid uuid")
        case .boolean:
            return BooleanText.parse(trimSpace(bytes)).map { .value(.ordinal($0 ? 1 : 0)) }
                ?? .invalid("is not a valid boolean")
        case .date, .timestamp, .timestamptz: return readMoment(trimSpace(bytes), column.comparison)
        case .canonical, .postgres: return .unsure
        }
    }

    private static let integerRanges: [String: ClosedRange<Int64>] = [
        "int2": Int64(Int16.min)...Int64(Int16.max), "int4": Int64(Int32.min)...Int64(Int32.max),
        "int8": Int64.min...Int64.max,
    ]

    private static func readDecimal(_ text: ArraySlice<UInt8>, type: String) -> Reading {
        if let range = integerRanges[type] {
            let scan = NumberScan(text)
            guard scan.isComplete, scan.isPlainInteger else { return .unsure }
            guard let value = scan.integer, range.contains(value) else {
                return .invalid("is out of range for type \(type)")
            }
            return ExactDecimal(text).map { .value(.decimal($0)) } ?? .unsure
        }
        if type == "oid" {
            // An oid accepts a minus sign and wraps around.
            let scan = NumberScan(text)
            guard !scan.isNegative, let value = scan.integer, value <= Int64(UInt32.max) else { return .unsure }
            return ExactDecimal(text).map { .value(.decimal($0)) } ?? .unsure
        }
        guard type == "numeric" else { return .unsure }
        if isWord("nan", text) { return .value(.decimal(.nan)) }
        let scan = NumberScan(text)
        // Far below the limits at which numeric rounds or refuses.
        guard scan.isComplete, scan.digits.count <= 1000, abs(scan.exponent) <= 1000 else { return .unsure }
        return ExactDecimal(text).map { .value(.decimal($0)) } ?? .unsure
    }

    private static func readFloat(_ text: ArraySlice<UInt8>, type: String) -> Reading {
        guard type == "float4" || type == "float8" else { return .unsure }
        if isWord("nan", text) { return .value(.float(.nan)) }
        if isWord("infinity", text) { return .value(.float(.infinity)) }
        if isWord("-infinity", text) { return .value(.float(-.infinity)) }
        let scan = NumberScan(text)
        guard scan.isComplete else { return .unsure }
        let string = String(decoding: text, as: UTF8.self)
        let number = type == "float4" ? Float(string).map(Double.init) : Double(string)
        // Postgres treats overflow and underflow as errors.
        guard let number, number.isFinite, number != 0 || scan.isZero else { return .unsure }
        return .value(.float(number))
    }

    private static func readMoment(_ text: ArraySlice<UInt8>, _ comparison: Comparison) -> Reading {
        if isWord("infinity", text) { return .value(.infinity) }
        if isWord("-infinity", text) { return .value(.negativeInfinity) }
        // Longer years, BC and the like are left to Postgres, as is everything that depends on a session's settings.
        guard let moment = ISOMoment(text), moment.hasPlainYear else { return .unsure }
        let isWanted =
            switch comparison {
            case .date: !moment.hasTime && !moment.hasZone
            case .timestamp: !moment.hasZone
            default: moment.hasTime && moment.hasZone
            }
        guard isWanted else { return .unsure }
        return moment.value(as: comparison).map(Reading.value) ?? .unsure
    }

    private static func isWord(_ word: String, _ text: ArraySlice<UInt8>) -> Bool {
        text.count == word.utf8.count
            && zip(text, word.utf8).allSatisfy { ($0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0) == $1 }
    }

    /// The text without surrounding white space by C's `isspace`, as Postgres' input functions trim it.
    private static func trimSpace(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
        guard let first = bytes.firstIndex(where: { !isSpace($0) }),
            let last = bytes.lastIndex(where: { !isSpace($0) })
        else { return [] }
        return bytes[first...last]
    }
}

/// The spellings of a boolean that Postgres accepts.
enum BooleanText {
    /// Any prefix of true, false, yes and no, any unambiguous prefix of on and off, and 1 and 0; in any case.
    static func parse(_ text: ArraySlice<UInt8>) -> Bool? {
        guard !text.isEmpty, text.count <= 5 else { return nil }
        let word = String(decoding: text, as: UTF8.self).lowercased()
        switch word {
        case "1", "on": return true
        case "0", "of", "off": return false
        default: break
        }
        if "true".hasPrefix(word) || "yes".hasPrefix(word) { return true }
        if "false".hasPrefix(word) || "no".hasPrefix(word) { return false }
        return nil
    }
}
