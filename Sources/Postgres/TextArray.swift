/// Builds the input text of an array type (Postgres, "Array Input and Output Syntax"), for a statement that takes many
/// values at once.
package struct TextArray {
    @usableFromInline var bytes: [UInt8] = [UInt8(ascii: "{")]

    package init() {}

    package mutating func append(_ flag: Bool) { appendWord([flag ? UInt8(ascii: "t") : UInt8(ascii: "f")]) }

    package mutating func append(_ number: Int64) { appendWord(String(number).utf8) }

    /// - Parameter text: UTF-8 without a NUL; nil is NULL.
    @inlinable package mutating func append(_ text: (some Sequence<UInt8>)?) {
        guard let text else { return appendWord("NULL".utf8) }
        appendSeparator()
        bytes.append(UInt8(ascii: "\""))
        for byte in text {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
    }

    @usableFromInline mutating func appendWord(_ word: some Sequence<UInt8>) {
        appendSeparator()
        bytes += word
    }

    @usableFromInline mutating func appendSeparator() {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
    }

    package var literal: String { String(decoding: bytes, as: UTF8.self) + "}" }
}
