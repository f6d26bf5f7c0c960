/// Writes JSON text (RFC 8259) in the order of the calls, with commas added automatically.
///
/// Made for text into which existing JSON values are spliced unchanged. Frames of a fixed shape are built without it
/// (`ServerFrame`). Objects and arrays that are opened must be closed.
package struct JSONWriter: Sendable {
    package private(set) var bytes: [UInt8] = []
    private var needsComma = false

    package init() {}

    /// - Parameter count: the bytes to reserve.
    package init(reserving count: Int) { bytes.reserveCapacity(count) }

    package var text: String { String(decoding: bytes, as: UTF8.self) }

    // MARK: Objects and arrays

    package mutating func openObject() { openBracket(UInt8(ascii: "{")) }
    package mutating func closeObject() { closeBracket(UInt8(ascii: "}")) }
    package mutating func openArray() { openBracket(UInt8(ascii: "[")) }
    package mutating func closeArray() { closeBracket(UInt8(ascii: "]")) }

    package mutating func object<Failure>(
        _ members: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        openObject()
        try members(&self)
        closeObject()
    }

    package mutating func array<Elements: Sequence>(
        _ elements: Elements, _ each: (inout JSONWriter, Elements.Element) -> Void
    ) {
        openArray()
        for element in elements { each(&self, element) }
        closeArray()
    }

    /// Returns the text of one object.
    package static func object<Failure>(
        _ members: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) -> [UInt8] {
        var writer = JSONWriter()
        try writer.object(members)
        return writer.bytes
    }

    // MARK: Keys

    /// Writes the key of the next value.
    package mutating func writeKey(_ name: String) {
        writeSeparator()
        JSONString.encode(name, into: &bytes)
        writeColon()
    }

    /// - Parameter rawKey: the key in its JSON form, without quotes.
    package mutating func writeKey(raw rawKey: ArraySlice<UInt8>) {
        writeSeparator()
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: rawKey)
        bytes.append(UInt8(ascii: "\""))
        writeColon()
    }

    // MARK: Values

    package mutating func writeValue(_ text: String) {
        writeSeparator()
        JSONString.encode(text, into: &bytes)
    }

    package mutating func writeValue(_ number: some BinaryInteger) {
        writeSeparator()
        bytes.append(contentsOf: String(number).utf8)
    }

    package mutating func writeValue(_ flag: Bool) {
        writeSeparator()
        bytes.append(contentsOf: (flag ? "true" : "false").utf8)
    }

    /// Writes the shortest digits that denote exactly this number; NaN and infinities, which JSON lacks, become null.
    package mutating func writeValue(_ number: Double) {
        writeSeparator()
        let digits = number.isFinite ? "\(number)" : "null"
        bytes.append(contentsOf: digits.hasSuffix(".0") ? digits.dropLast(2).utf8 : digits[...].utf8)
    }

    package mutating func writeNull() {
        writeSeparator()
        bytes.append(contentsOf: "null".utf8)
    }

    /// - Parameter json: an encoded value.
    package mutating func writeValue(json: ArraySlice<UInt8>) {
        writeSeparator()
        bytes.append(contentsOf: json)
    }

    package mutating func writeValue(json: [UInt8]) { writeValue(json: json[...]) }

    // MARK: Members

    package mutating func writeMember(_ key: String, _ text: String) {
        self.writeKey(key)
        writeValue(text)
    }

    package mutating func writeMember(_ key: String, _ number: some BinaryInteger) {
        self.writeKey(key)
        writeValue(number)
    }

    package mutating func writeMember(_ key: String, _ number: Double) {
        self.writeKey(key)
        writeValue(number)
    }

    package mutating func writeMember(_ key: String, _ flag: Bool) {
        self.writeKey(key)
        writeValue(flag)
    }

    package mutating func writeMember(_ key: String, _ texts: [String]) {
        self.writeKey(key)
        array(texts) { $0.writeValue($1) }
    }

    package mutating func writeMember(_ key: String, json: ArraySlice<UInt8>) {
        self.writeKey(key)
        writeValue(json: json)
    }

    package mutating func writeMember(_ key: String, json: [UInt8]) { writeMember(key, json: json[...]) }

    /// Writes a member of another object unchanged.
    package mutating func writeMember(_ member: JSON.Member) {
        writeKey(raw: member.rawKey)
        writeValue(json: member.value.bytes)
    }

    package mutating func object<Failure>(
        _ key: String, _ members: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        self.writeKey(key)
        try object(members)
    }

    package mutating func array<Elements: Sequence>(
        _ key: String, _ elements: Elements, _ each: (inout JSONWriter, Elements.Element) -> Void
    ) {
        self.writeKey(key)
        array(elements, each)
    }

    // MARK: Punctuation

    private mutating func openBracket(_ bracket: UInt8) {
        writeSeparator()
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func closeBracket(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func writeColon() {
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    private mutating func writeSeparator() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }
}
