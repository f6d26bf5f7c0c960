import Wire

/// Encodes a message to other hubs: numbers as LEB128, texts and bytes preceded by their length.
struct RelayWriter {
    private(set) var bytes: [UInt8] = []

    init(reserving count: Int = 64) { bytes.reserveCapacity(count) }

    mutating func byte(_ value: UInt8) { bytes.append(value) }

    mutating func number(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// For a number that is never negative.
    mutating func number(_ value: Int) { number(UInt64(max(0, value))) }

    mutating func data(_ data: some Collection<UInt8>) {
        number(data.count)
        bytes += data
    }

    mutating func text(_ text: String) { data(text.utf8) }

    mutating func name(_ name: Name) { data(name.utf8) }

    /// A value that may be missing: its length plus one, or 0.
    mutating func optional(_ data: (some Collection<UInt8>)?) {
        number(data.map { $0.count + 1 } ?? 0)
        if let data { bytes += data }
    }
}

/// Decodes what `RelayWriter` wrote. For arbitrary bytes it returns a value or throws `Malformed`.
struct RelayReader {
    struct Malformed: Error {}

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func byte() throws(Malformed) -> UInt8 {
        guard let byte = rest.popFirst() else { throw Malformed() }
        return byte
    }

    mutating func number() throws(Malformed) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let next = try byte()
            guard shift < 63 || next <= 1 else { throw Malformed() }
            value |= UInt64(next & 0x7f) << shift
            guard next & 0x80 != 0 else { return value }
            shift += 7
        }
    }

    /// A number used in arithmetic, such as a count, a turn or milliseconds: bounded so that sums cannot overflow.
    mutating func count() throws(Malformed) -> Int {
        let value = try number()
        guard value <= 1 << 53 else { throw Malformed() }
        return Int(value)
    }

    mutating func data() throws(Malformed) -> ArraySlice<UInt8> { try take(try count()) }

    mutating func text() throws(Malformed) -> String {
        guard let text = String(validating: try data(), as: UTF8.self) else { throw Malformed() }
        return text
    }

    mutating func name() throws(Malformed) -> Name { Name(try text()) }

    mutating func optional() throws(Malformed) -> ArraySlice<UInt8>? {
        let length = try count()
        return length == 0 ? nil : try take(length - 1)
    }

    mutating func optionalText() throws(Malformed) -> String? {
        guard let data = try optional() else { return nil }
        guard let text = String(validating: data, as: UTF8.self) else { throw Malformed() }
        return text
    }

    mutating func optionalName() throws(Malformed) -> Name? { try optionalText().map { Name($0) } }

    private mutating func take(_ length: Int) throws(Malformed) -> ArraySlice<UInt8> {
        guard length <= rest.count else { throw Malformed() }
        defer { rest = rest.dropFirst(length) }
        return rest.prefix(length)
    }
}
