/// Writes JSON text (RFC 8259) in the order in which it is told; commas come by themselves.
///
/// It is for text into which values are spliced that are JSON already, and keeps them to the byte. Frames whose shape never
/// changes are put together without it (`ServerFrame`). An object or array that was opened is to be closed.
package struct JSONWriter: Sendable {
    package private(set) var bytes: [UInt8] = []
    private var needsComma = false

    package init() {}

    /// - Parameter count: bytes for which there is to be room.
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

    /// The text of one object.
    package static func object<Failure>(
        _ members: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) -> [UInt8] {
        var writer = JSONWriter()
        try writer.object(members)
        return writer.bytes
    }

    // MARK: Keys

    /// The key of the value that comes next.
    package mutating func key(_ name: String) {
        separate()
        JSONString.encode(name, into: &bytes)
        colon()
    }

    /// - Parameter rawKey: the key as JSON writes it between its quotes.
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

    /// The shortest digits that mean exactly this number; JSON has no NaN and no infinity, which become null.
    package mutating func value(_ number: Double) {
        separate()
        let digits = number.isFinite ? "\(number)" : "null"
        bytes.append(contentsOf: digits.hasSuffix(".0") ? digits.dropLast(2).utf8 : digits[...].utf8)
    }

    package mutating func null() {
        separate()
        bytes.append(contentsOf: "null".utf8)
    }

    /// - Parameter json: a value that is JSON already.
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

    /// A member as it stands in another object, to the byte.
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
