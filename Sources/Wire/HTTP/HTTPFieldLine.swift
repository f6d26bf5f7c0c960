/// Where one field stands in a head or among trailers: offsets of its name and of its value without the spaces around
/// it.
struct HTTPFieldLine {
    private let nameStart, nameEnd, valueStart, valueEnd: UInt32

    var name: Range<Int> { Int(nameStart)..<Int(nameEnd) }
    var value: Range<Int> { Int(valueStart)..<Int(valueEnd) }

    /// Reads a line that is not empty (RFC 9112, section 5).
    /// - Parameter line: without its CR and LF.
    init(_ line: Range<Int>, in bytes: Span<UInt8>) throws(HTTPRefusal) {
        guard !HTTPByte.isBlank(bytes[line.lowerBound]) else { throw .folded }
        var at = line.lowerBound
        while at < line.upperBound, HTTPByte.isToken(bytes[at]) { at += 1 }
        let nameEnd = at
        guard at < line.upperBound, bytes[at] == UInt8(ascii: ":"), nameEnd > line.lowerBound else {
            throw Self.nameRefusal(line, nameEnd, in: bytes)
        }
        at += 1
        while at < line.upperBound, HTTPByte.isBlank(bytes[at]) { at += 1 }
        var end = line.upperBound
        while end > at, HTTPByte.isBlank(bytes[end - 1]) { end -= 1 }
        try Self.check(value: at..<end, in: bytes)
        nameStart = UInt32(line.lowerBound)
        self.nameEnd = UInt32(nameEnd)
        valueStart = UInt32(at)
        valueEnd = UInt32(end)
    }

    private static func check(value: Range<Int>, in bytes: Span<UInt8>) throws(HTTPRefusal) {
        var all: UInt8 = 0
        let text = bytes.extracting(value)
        // Bytes behind the first of the eight that stops are looked at again, one by one.
        for at in PlainRun.endOfVisible(in: text, from: 0)..<text.count {
            let byte = text[at]
            guard !HTTPByte.isControl(byte) else {
                throw byte == HTTPByte.carriageReturn ? .bareCarriageReturn : .fieldControl
            }
            all |= byte
        }
        guard all < 0x80 || UTF8Scanner.isValid(text) else { throw .fieldUTF8 }
    }

    /// What is wrong with a line whose name is not followed by a colon.
    private static func nameRefusal(_ line: Range<Int>, _ nameEnd: Int, in bytes: Span<UInt8>) -> HTTPRefusal {
        let rest = nameEnd..<line.upperBound
        if rest.contains(where: { bytes[$0] == HTTPByte.carriageReturn }) { return .bareCarriageReturn }
        guard rest.contains(where: { bytes[$0] == UInt8(ascii: ":") }) else { return .noColon }
        return nameEnd > line.lowerBound && HTTPByte.isBlank(bytes[nameEnd]) ? .spaceBeforeColon : .fieldName
    }
}
