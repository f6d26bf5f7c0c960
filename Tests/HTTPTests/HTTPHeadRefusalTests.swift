import HTTP
import Testing

/// What the strict parser refuses, by the rule's name.
struct RefusedHead: CustomTestStringConvertible {
    let rule: String
    let bytes: [UInt8]
    let status: Int
    /// Part of the sentence.
    let says: String

    var testDescription: String { rule }

    init(_ rule: String, _ text: String, _ status: Int = 400, says: String) {
        self.init(rule, bytes: Array(text.utf8), status, says: says)
    }

    init(_ rule: String, bytes: [UInt8], _ status: Int = 400, says: String) {
        self.rule = rule
        self.bytes = bytes
        self.status = status
        self.says = says
    }

    /// A well-formed POST but for some lines.
    init(_ rule: String, lines: String, _ status: Int = 400, says: String) {
        self.init(rule, "POST /a HTTP/1.1\r\nHost: x\r\n\(lines)\r\n\r\n", status, says: says)
    }

    /// A head that is well-formed but for one byte in a value.
    static func byte(_ byte: UInt8, says: String) -> RefusedHead {
        RefusedHead(
            "byte \(byte) in a value",
            bytes: Array("GET / HTTP/1.1\r\nHost: x\r\nA: b".utf8) + [byte] + Array("c\r\n\r\n".utf8), says: says)
    }

    static let all: [RefusedHead] = requestLines + targets + fields + hosts + lengths + codings + limits

    static let requestLines: [RefusedHead] = [
        RefusedHead("TLS on a plain port", bytes: [0x16, 0x03, 0x01], says: "without TLS"),
        RefusedHead(
            "two empty lines before", "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", says: "begin with its method"),
        RefusedHead("bare LF before", "\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", says: "begin with its method"),
        RefusedHead("bare CR before", "\rGET / HTTP/1.1\r\nHost: x\r\n\r\n", says: "carriage return"),
        RefusedHead("space before", " GET / HTTP/1.1\r\nHost: x\r\n\r\n", says: "begin with its method"),
        RefusedHead("method is no token", "G(T / HTTP/1.1\r\nHost: x\r\n\r\n", says: "begin with its method"),
        RefusedHead("tab behind the method", "GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n", says: "begin with its method"),
        RefusedHead("method without end", String(repeating: "A", count: 33), 501, says: "longer"),
        RefusedHead("two spaces", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", says: "one space"),
        RefusedHead("two spaces behind", "GET /  HTTP/1.1\r\nHost: x\r\n\r\n", says: "one space"),
        RefusedHead("space at the end", "GET / HTTP/1.1 \r\nHost: x\r\n\r\n", says: "one space"),
        RefusedHead("HTTP/0.9", "GET /\r\n", says: "one space"),
        RefusedHead("version in lower case", "GET / http/1.1\r\nHost: x\r\n\r\n", says: "one space"),
        RefusedHead("version with two digits", "GET / HTTP/1.10\r\nHost: x\r\n\r\n", says: "one space"),
        RefusedHead("HTTP/2.0", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505, says: "HTTP/1.1"),
        RefusedHead("HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, says: "HTTP/1.1"),
        RefusedHead("HTTP/0.9, written", "GET / HTTP/0.9\r\nHost: x\r\n\r\n", 505, says: "HTTP/1.1"),
        RefusedHead("bare LF", "GET / HTTP/1.1\nHost: x\r\n\r\n", says: "end with a carriage return"),
        RefusedHead("bare CR in the line", "GET /\r HTTP/1.1\r\nHost: x\r\n\r\n", says: "carriage return"),
        RefusedHead("two CRs", "GET / HTTP/1.1\r\r\nHost: x\r\n\r\n", says: "one space"),
    ]

    static let targets: [RefusedHead] = [
        RefusedHead("no slash", "GET a HTTP/1.1\r\nHost: x\r\n\r\n", says: "slash"),
        RefusedHead("asterisk", "GET * HTTP/1.1\r\nHost: x\r\n\r\n", says: "slash"),
        RefusedHead("fragment", "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", says: "fragment"),
        RefusedHead("UTF-8", "GET /ä HTTP/1.1\r\nHost: x\r\n\r\n", says: "percent-encode"),
        RefusedHead("NUL", "GET /a\0 HTTP/1.1\r\nHost: x\r\n\r\n", says: "percent-encode"),
        RefusedHead("broken escape", "GET /%4 HTTP/1.1\r\nHost: x\r\n\r\n", says: "percent sign"),
        RefusedHead("no escape", "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", says: "percent sign"),
        RefusedHead("escaped NUL", "GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", says: "percent sign"),
        RefusedHead("escape that is no UTF-8", "GET /%ff HTTP/1.1\r\nHost: x\r\n\r\n", says: "percent sign"),
        RefusedHead("overlong UTF-8", "GET /%c0%af HTTP/1.1\r\nHost: x\r\n\r\n", says: "percent sign"),
        RefusedHead("broken escape in the query", "GET /?a=%4 HTTP/1.1\r\nHost: x\r\n\r\n", says: "percent sign"),
        RefusedHead("escape over a query's border", "GET /?a=%4&1=b HTTP/1.1\r\nHost: x\r\n\r\n", says: "percent sign"),
        RefusedHead("no UTF-8 in the query", "GET /?a=%e4 HTTP/1.1\r\nHost: x\r\n\r\n", says: "percent sign"),
        RefusedHead("another host", "GET http://y/ HTTP/1.1\r\nHost: x\r\n\r\n", says: "the same"),
        RefusedHead("another port", "GET http://x:81/ HTTP/1.1\r\nHost: x\r\n\r\n", says: "the same"),
        RefusedHead("userinfo", "GET http://a:b@x/ HTTP/1.1\r\nHost: x\r\n\r\n", says: "slash"),
        RefusedHead("scheme without a host", "GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n", says: "slash"),
        RefusedHead("another scheme", "GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", says: "slash"),
        RefusedHead("absolute-form, no Host", "GET http://x/ HTTP/1.1\r\n\r\n", says: "must have a Host"),
        RefusedHead("CONNECT without a port", "CONNECT x HTTP/1.1\r\nHost: x\r\n\r\n", says: "slash"),
        RefusedHead("authority-form", "GET x:80 HTTP/1.1\r\nHost: x\r\n\r\n", says: "slash"),
    ]

    static let fields: [RefusedHead] =
        [
            RefusedHead("bare LF", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", says: "end with a carriage return"),
            RefusedHead("bare LF at the end", "GET / HTTP/1.1\r\nHost: x\r\n\n", says: "end with a carriage return"),
            RefusedHead("LF LF", "GET / HTTP/1.1\nHost: x\n\n", says: "end with a carriage return"),
            RefusedHead("bare CR in a value", lines: "A: b\rContent-Length: 5", says: "carriage return"),
            RefusedHead("bare CR in a name", lines: "A\rb: c", says: "carriage return"),
            RefusedHead("CR CR LF", lines: "A: b\r", says: "carriage return"),
            RefusedHead("line that is a CR", lines: "\r", says: "carriage return"),
            RefusedHead("obs-fold", lines: "A: b\r\n c", says: "one line"),
            RefusedHead("obs-fold with a tab", lines: "A: b\r\n\tContent-Length: 5", says: "one line"),
            RefusedHead("space before the first field", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", says: "one line"),
            RefusedHead("no colon", lines: "Abc", says: "colon between"),
            RefusedHead("space before the colon", lines: "Content-Length : 5", says: "No space"),
            RefusedHead("tab before the colon", lines: "Content-Length\t: 5", says: "No space"),
            RefusedHead("no name", lines: ": a", says: "letters, digits"),
            RefusedHead("name with a space", lines: "Content Length: 5", says: "No space"),
            RefusedHead("name with a bracket", lines: "A(b): c", says: "letters, digits"),
            RefusedHead("name in UTF-8", lines: "Ä: c", says: "letters, digits"),
            RefusedHead("NUL in a name", lines: "A\0: c", says: "letters, digits"),
            RefusedHead(
                "value in Latin-1", bytes: Array("GET / HTTP/1.1\r\nHost: x\r\nA: ".utf8) + [0xE4, 13, 10, 13, 10],
                says: "UTF-8"),
        ] + (0...0x1F).filter { ![9, 10, 13].contains($0) }.map { .byte($0, says: "control") } + [
            .byte(0x7F, says: "control")
        ]

    static let hosts: [RefusedHead] =
        [
            RefusedHead("no Host", "GET / HTTP/1.1\r\n\r\n", says: "must have a Host"),
            RefusedHead("two Hosts", lines: "Host: y", says: "one Host"),
            RefusedHead("the same Host twice", lines: "host: x", says: "one Host"),
            RefusedHead("two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n", says: "one Host"),
        ]
        + [
            "", "a b", "a,b", "a/b", "u@a", "a?", "a#", "a:b", "a:123456", "a:1:2", "[::1", "[::1]a", "[]", "[x]",
            ":80", "ä", "%61", "a\\b",
        ]
        .map { RefusedHead("Host \($0)", "GET / HTTP/1.1\r\nHost: \($0)\r\n\r\n", says: "host name or address") }

    static let lengths: [RefusedHead] =
        [
            RefusedHead("two lengths", lines: "Content-Length: 5\r\nContent-Length: 6", says: "one Content-Length"),
            RefusedHead("a length twice", lines: "Content-Length: 5\r\ncontent-length: 5", says: "one Content-Length"),
            RefusedHead(
                "length and chunks", lines: "Content-Length: 5\r\nTransfer-Encoding: chunked", says: "not both"),
            RefusedHead(
                "chunks and length", lines: "Transfer-Encoding: chunked\r\nContent-Length: 5", says: "not both"),
            RefusedHead(
                "chunks and length 0", lines: "Transfer-Encoding: chunked\r\nContent-Length: 0", says: "not both"),
        ]
        + [
            "", "+2", "-1", "-0", " 2 3", "5,5", "5, 5", "5;a", "0x5", "5a", "2.0", "1e3", "٣", "9223372036854775808",
            "18446744073709551621", "00000000000000000005", "99999999999999999999999999", "\"5\"",
        ].map { RefusedHead("length \($0)", lines: "Content-Length: \($0)", says: "one decimal number") }

    static let codings: [RefusedHead] =
        [
            RefusedHead(
                "chunked twice", lines: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                says: "chunked and nothing"),
            RefusedHead(
                "chunked, then identity", lines: "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
                says: "chunked and nothing"),
            RefusedHead(
                "chunks in HTTP/1.0", "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
                says: "HTTP/1.0"),
        ]
        + [
            "", "identity", "gzip", "gzip, chunked", "chunked, gzip", "chunked, identity", "chunked, chunked",
            "xchunked",
            "chunkedx", "chunked;a=b", "\"chunked\"", "chunked,", ",chunked", "chunke", "cow", "chunked\t",
            "\u{0B}chunked",
        ].map {
            RefusedHead(
                "coding \($0)", lines: "Transfer-Encoding: \($0)",
                says: $0.hasPrefix("\u{0B}") ? "control" : "nothing else")
        }

    static let limits: [RefusedHead] = [
        RefusedHead(
            "long target", "GET /\(String(repeating: "a", count: 8_192)) HTTP/1.1\r\nHost: x\r\n\r\n", 414, says: "8192"
        ),
        RefusedHead("target without end", "GET /\(String(repeating: "a", count: 17_000))", 414, says: "8192"),
        RefusedHead(
            "many fields", lines: Array(repeating: "A: b", count: 100).joined(separator: "\r\n"), 431, says: "100"),
        RefusedHead("long head", lines: "A: \(String(repeating: "b", count: 16_384))", 431, says: "16384"),
        RefusedHead(
            "no end",
            lines: Array(repeating: String(repeating: "b", count: 400) + ":", count: 50).joined(separator: "\r\n"), 431,
            says: "16384"),
    ]
}

@Suite struct HTTPHeadRefusalTests {
    @Test(arguments: RefusedHead.all) func isRefused(_ head: RefusedHead) throws {
        let refusal = try #require(readHead(head.bytes).refusal)
        #expect(refusal.status == head.status)
        #expect(refusal.message.contains(head.says), "\(refusal.message)")
    }

    /// The same, wherever its pieces are cut.
    @Test(arguments: RefusedHead.all) func isRefusedInPieces(_ head: RefusedHead) {
        let whole = readHead(head.bytes)
        #expect(readHead(head.bytes, arrivals: 0...head.bytes.count) == whole, "byte by byte")
        for cut in stride(from: 0, to: head.bytes.count, by: head.bytes.count > 4_000 ? 97 : 1)
        where readHead(head.bytes, arrivals: [cut, head.bytes.count]) != whole {
            Issue.record("cut at \(cut)")
        }
    }

    @Test func everySentenceIsOne() throws {
        for head in RefusedHead.all {
            let message = try #require(readHead(head.bytes).refusal).message
            #expect(message.hasSuffix(".") && message.first?.isUppercase == true && !message.dropLast().contains(". "))
            #expect(message.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }, "nothing of what was sent comes back")
        }
    }
}
