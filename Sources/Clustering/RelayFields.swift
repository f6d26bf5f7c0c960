import Wire

/// Encodes a message to other hubs: numbers as LEB128, texts and bytes preceded by their length.
struct RelayWriter {
    private(set) var bytes: [UInt8] = []

    init(reserving count: Int = 64) { bytes.reserveCapacity(count) }

    mutating func appendByte(_ value: UInt8) { bytes.append(value) }

    mutating func appendNumber(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// For a number that is never negative.
    mutating func appendNumber(_ value: Int) { appendNumber(UInt64(max(0, value))) }

    mutating func appendData(_ data: some Collection<UInt8>) {
        appendNumber(data.count)
        bytes += data
    }

    mutating func appendText(_ text: String) { appendData(text.utf8) }

    mutating func appendName(_ name: Name) { appendData(name.utf8) }

    /// A value that may be missing: its length plus one, or 0.
    mutating func appendOptional(_ data: (some Collection<UInt8>)?) {
        appendNumber(data.map { $0.count + 1 } ?? 0)
        if let data { bytes += data }
    }
}

/// Decodes what `RelayWriter` wrote. For arbitrary bytes it returns a value or throws `Malformed`.
struct RelayReader {
    struct Malformed: Error {}

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func readByte() throws(Malformed) -> UInt8 {
        guard let byte = rest.popFirst() else { throw Malformed() }
        return byte
    }

    mutating func readNumber() throws(Malformed) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let next = try readByte()
            guard shift < 63 || next <= 1 else { throw Malformed() }
            value |= UInt64(next & 0x7f) << shift
            guard next & 0x80 != 0 else { return value }
            shift += 7
        }
    }

    /// A number used in arithmetic, such as a count, a turn or milliseconds: bounded so that sums cannot overflow.
    mutating func readCount() throws(Malformed) -> Int {
        let value = try readNumber()
        guard value <= 1 << 53 else { throw Malformed() }
        return Int(value)
    }

    mutating func readData() throws(Malformed) -> ArraySlice<UInt8> { try takeBytes(try readCount()) }

    mutating func readText() throws(Malformed) -> String {
        guard let text = String(validating: try readData(), as: UTF8.self) else { throw Malformed() }
        return text
    }

    mutating func readName() throws(Malformed) -> Name { Name(try readText()) }

    mutating func readOptional() throws(Malformed) -> ArraySlice<UInt8>? {
        let length = try readCount()
        return length == 0 ? nil : try takeBytes(length - 1)
    }

    mutating func readOptionalText() throws(Malformed) -> String? {
        guard let data = try readOptional() else { return nil }
        guard let text = String(validating: data, as: UTF8.self) else { throw Malformed() }
        return text
    }

    mutating func readOptionalName() throws(Malformed) -> Name? { try readOptionalText().map { Name($0) } }

    private mutating func takeBytes(_ length: Int) throws(Malformed) -> ArraySlice<UInt8> {
        guard length <= rest.count else { throw Malformed() }
        defer { rest = rest.dropFirst(length) }
        return rest.prefix(length)
    }
}
