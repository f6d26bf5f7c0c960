import Wire

/// A request's head (RFC 9112, RFC 9110), as parsed by `HTTPHeadParser`.
///
/// The fields stay bytes until they are read: of the dozen in a typical request, the response depends on two or three.
package struct HTTPHead: Sendable {
    /// The token as written. Methods are case-sensitive (RFC 9110, section 9.1).
    package let method: String
    /// Origin-form as written, `*` (only for OPTIONS), or `host:port` (only for CONNECT). Absolute-form is reduced to
    /// origin-form (RFC 9112, section 3.2).
    package let target: String
    /// Percent-decoded once: valid UTF-8 without NUL that begins with a slash. `/` if `target` is not in origin-form.
    package let path: String
    /// Decoded, in order. A plus sign in a name or a value is a space.
    package let query: [(name: String, value: String)]
    /// Such a client understands neither chunks nor `100 Continue`.
    package let isHTTP10: Bool
    package let body: HTTPBodyFraming
    /// Whether the client allows the connection to stay open after the response (RFC 9112, section 9.3).
    package let keepsAlive: Bool
    /// Whether the client waits for `100 Continue` before it sends its body (RFC 9110, section 10.1.1).
    package let expectsContinue: Bool
    /// The head as received, and the positions of its fields.
    let bytes: [UInt8]
    let lines: [HTTPFieldLine]
    /// The host of a target in absolute-form, for the Host header that an HTTP/1.0 client may omit.
    let missingHost: String?

    /// Names in lower case and values without surrounding spaces, in order.
    package var fields: [(name: String, value: String)] {
        let written = lines.map { (name: bytes.span.lowercasedText($0.name), value: bytes.span.text($0.value)) }
        return missingHost.map { written + [("host", $0)] } ?? written
    }

    /// The value of a field; nil if it is absent. The values of a repeated field are joined with a comma and a space,
    /// as in a list (RFC 9110, section 5.3).
    /// - Parameter name: in lower case.
    package func field(_ name: String) -> String? {
        var joined: String?
        for line in lines where isNamed(line, name) {
            let value = bytes.span.text(line.value)
            if joined == nil { joined = value } else { joined?.append(", \(value)") }
        }
        return joined ?? (name == "host" ? missingHost : nil)
    }

    /// The token behind the scheme `Bearer` in `authorization` (RFC 6750, section 2.1).
    package var bearer: String? {
        guard let first = lines.firstIndex(where: { isNamed($0, "authorization") }) else { return nil }
        // A repeated field is a list, not a token.
        let isRepeated = lines[(first + 1)...].contains { isNamed($0, "authorization") }
        return isRepeated ? field("authorization") : bytes.span.bearer(in: lines[first].value)
    }

    /// The first value of a name in the query; nil if it is absent.
    package func query(_ name: String) -> String? {
        query.first { $0.name == name }?.value
    }

    /// Whether a field that is a list of tokens contains this one, ignoring case: `upgrade` in `connection`.
    /// - Parameter name: in lower case.
    package func lists(_ token: String, in name: String) -> Bool {
        lines.contains { isNamed($0, name) && HTTPList.contains(token, in: bytes.span.text($0.value)) }
    }

    private func isNamed(_ line: HTTPFieldLine, _ name: String) -> Bool {
        bytes.span.isEqual(line.name, ignoringCase: name)
    }
}

/// How a request's body is delimited (RFC 9112, section 6).
package enum HTTPBodyFraming: Sendable, Equatable {
    case none
    /// This many bytes follow.
    case length(Int)
    case chunked
}

/// Lists of tokens, separated by commas (RFC 9110, section 5.6.1).
enum HTTPList {
    static func contains(_ token: String, in list: String) -> Bool {
        let utf8 = list.utf8
        var rest = utf8[...]
        while true {
            let end = rest.firstIndex(of: UInt8(ascii: ",")) ?? rest.endIndex
            if isEqual(trimmed(rest[..<end]), token.utf8[...]) { return true }
            guard end < rest.endIndex else { return false }
            rest = rest[rest.index(after: end)...]
        }
    }

    private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
        var text = text
        while let first = text.first, HTTPByte.isBlank(first) { text.removeFirst() }
        while let last = text.last, HTTPByte.isBlank(last) { text.removeLast() }
        return text
    }

    private static func isEqual(_ one: Substring.UTF8View, _ other: Substring.UTF8View) -> Bool {
        one.elementsEqual(other) { HTTPByte.lowercased($0) == HTTPByte.lowercased($1) }
    }
}

/// The position of a field in a head or among trailers: offsets of its name and of its value without surrounding
/// spaces.
struct HTTPFieldLine {
    private let nameStart, nameEnd, valueStart, valueEnd: UInt32

    var name: Range<Int> { Int(nameStart)..<Int(nameEnd) }
    var value: Range<Int> { Int(valueStart)..<Int(valueEnd) }

    /// Parses a line that is not empty (RFC 9112, section 5).
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
        // The fast scan stops at a group of eight bytes; the rest is checked byte by byte.
        for at in PlainRun.endOfVisible(in: text, from: 0)..<text.count {
            let byte = text[at]
            guard !HTTPByte.isControl(byte) else {
                throw byte == HTTPByte.carriageReturn ? .bareCarriageReturn : .fieldControl
            }
            all |= byte
        }
        guard all < 0x80 || UTF8Scanner.isValid(text) else { throw .fieldUTF8 }
    }

    /// The refusal of a line whose name is not followed by a colon.
    private static func nameRefusal(_ line: Range<Int>, _ nameEnd: Int, in bytes: Span<UInt8>) -> HTTPRefusal {
        let rest = nameEnd..<line.upperBound
        if rest.contains(where: { bytes[$0] == HTTPByte.carriageReturn }) { return .bareCarriageReturn }
        guard rest.contains(where: { bytes[$0] == UInt8(ascii: ":") }) else { return .noColon }
        return nameEnd > line.lowerBound && HTTPByte.isBlank(bytes[nameEnd]) ? .spaceBeforeColon : .fieldName
    }
}
