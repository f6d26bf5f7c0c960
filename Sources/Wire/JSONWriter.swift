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

    package mutating func openObject() { open(UInt8(ascii: "{")) }
    package mutating func closeObject() { close(UInt8(ascii: "}")) }
    package mutating func openArray() { open(UInt8(ascii: "[")) }
    package mutating func closeArray() { close(UInt8(ascii: "]")) }

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
    package mutating func key(_ name: String) {
        separate()
        JSONString.encode(name, into: &bytes)
        colon()
    }

    /// - Parameter rawKey: the key in its JSON form, without quotes.
    package mutating func key(raw rawKey: ArraySlice<UInt8>) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: rawKey)
        bytes.append(UInt8(ascii: "\""))
        colon()
    }

    // MARK: Values

    package mutating func value(_ text: String) {
        separate()
        JSONString.encode(text, into: &bytes)
    }

    package mutating func value(_ number: some BinaryInteger) {
        separate()
        bytes.append(contentsOf: String(number).utf8)
    }

    package mutating func value(_ flag: Bool) {
        separate()
        bytes.append(contentsOf: (flag ? "true" : "false").utf8)
    }

    /// Writes the shortest digits that denote exactly this number; NaN and infinities, which JSON lacks, become null.
    package mutating func value(_ number: Double) {
        separate()
        let digits = number.isFinite ? "\(number)" : "null"
        bytes.append(contentsOf: digits.hasSuffix(".0") ? digits.dropLast(2).utf8 : digits[...].utf8)
    }

    package mutating func null() {
        separate()
        bytes.append(contentsOf: "null".utf8)
    }

    /// - Parameter json: an encoded value.
    package mutating func value(json: ArraySlice<UInt8>) {
        separate()
        bytes.append(contentsOf: json)
    }

    package mutating func value(json: [UInt8]) { value(json: json[...]) }

    // MARK: Members

    package mutating func member(_ key: String, _ text: String) {
        self.key(key)
        value(text)
    }

    package mutating func member(_ key: String, _ number: some BinaryInteger) {
        self.key(key)
        value(number)
    }

    package mutating func member(_ key: String, _ number: Double) {
        self.key(key)
        value(number)
    }

    package mutating func member(_ key: String, _ flag: Bool) {
        self.key(key)
        value(flag)
    }

    package mutating func member(_ key: String, _ texts: [String]) {
        self.key(key)
        array(texts) { $0.value($1) }
    }

    package mutating func member(_ key: String, json: ArraySlice<UInt8>) {
        self.key(key)
        value(json: json)
    }

    package mutating func member(_ key: String, json: [UInt8]) { member(key, json: json[...]) }

    /// Writes a member of another object unchanged.
    package mutating func member(_ member: JSON.Member) {
        key(raw: member.rawKey)
        value(json: member.value.bytes)
    }

    package mutating func object<Failure>(
        _ key: String, _ members: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        self.key(key)
        try object(members)
    }

    package mutating func array<Elements: Sequence>(
        _ key: String, _ elements: Elements, _ each: (inout JSONWriter, Elements.Element) -> Void
    ) {
        self.key(key)
        array(elements, each)
    }

    // MARK: Punctuation

    private mutating func open(_ bracket: UInt8) {
        separate()
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func colon() {
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }
}
