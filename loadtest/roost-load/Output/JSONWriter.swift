import Wire

/// Builds one JSON document in the order written; commas come by themselves.
struct JSONWriter {
    private var bytes: [UInt8] = []
    private var needsComma = false

    var text: String { String(decoding: bytes, as: UTF8.self) }

    mutating func key(_ name: String) {
        value(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    mutating func value(_ text: String) {
        separate()
        JSONString.encode(text, into: &bytes)
    }

    mutating func value(_ number: some BinaryInteger) {
        separate()
        bytes += String(number).utf8
    }

    mutating func value(_ flag: Bool) {
        separate()
        bytes += (flag ? "true" : "false").utf8
    }

    /// The shortest digits that mean exactly this number; JSON has no NaN and no infinity.
    mutating func value(_ number: Double) {
        separate()
        let digits = number.isFinite ? "\(number)" : "null"
        bytes += (digits.hasSuffix(".0") ? String(digits.dropLast(2)) : digits).utf8
    }

    mutating func null() {
        separate()
        bytes += "null".utf8
    }

    mutating func object(_ members: (inout JSONWriter) -> Void) { nest("{", "}", members) }

    mutating func array<Element>(_ elements: [Element], _ each: (inout JSONWriter, Element) -> Void) {
        nest("[", "]") { writer in
            for element in elements { each(&writer, element) }
        }
    }

    private mutating func nest(_ open: Unicode.Scalar, _ close: Unicode.Scalar, _ body: (inout JSONWriter) -> Void) {
        separate()
        bytes.append(UInt8(ascii: open))
        needsComma = false
        body(&self)
        bytes.append(UInt8(ascii: close))
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }
}
