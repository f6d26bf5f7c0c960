import HTTP
import Testing

@Suite struct HTTPHeadTests {
    static let browser = """
        GET /socket/websocket?apikey=eyJhbGciOiJIUzI1NiJ9.e30.abc&vsn=2.0.0 HTTP/1.1\r
        Host: hub.example.com:4000\r
        Connection: keep-alive, Upgrade\r
        Pragma: no-cache\r
        Cache-Control: no-cache\r
        User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari\r
        Upgrade: websocket\r
        Origin: https://example.com\r
        Sec-WebSocket-Version: 13\r
        Accept-Encoding: gzip, deflate, br, zstd\r
        Accept-Language: de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7\r
        Cookie: session=0192f0c17d6b7e61a9f30b6f7d0e5c11; theme=dark\r
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
        Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r
        \r

        """

    /// Heads that are taken.
    static let accepted: [String] = [
        browser,
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:x\r\nA:\r\nB: \t\r\nC: \t d e \t\r\n\r\n",
        "GET /a%20b/%C3%A4%2F?x=%2B+1&y&=z&&x=2&q=a=b HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
        "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 00\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \tChunked \r\nExpect: 100-Continue\r\n\r\n5\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: [::1]:4000\r\n\r\n",
        "OPTIONS http://x HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET HTTP://X:80?a=%20b HTTP/1.1\r\nHost: x:80\r\n\r\n",
        "GET https://x/a?b=c HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.2\r\nHost: x:\r\nName: Zoë\r\nX: 1\r\nX: 2\r\n\r\n",
        "!#$%&'*+-.^_`|~09azAZ /?{|}[]^`\"<>\\@: HTTP/1.1\r\nHost: a_b-c.d~\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n!#$%&'*+-.^_`|~09azAZ: \u{1F600}\r\n\r\n",
    ]

    private func head(_ text: String) throws -> HTTPHead {
        var parser = HTTPHeadParser()
        let bytes = Array(text.utf8)
        guard case .complete(let head, _) = bytes.withUnsafeBytes({ parser.parse($0) }) else {
            Issue.record("\(readHead(text))")
            throw HTTPRefusal(status: 0, message: "no head")
        }
        return head
    }

    @Test func aBrowsersUpgrade() throws {
        let head = try head(Self.browser)
        #expect(head.method == "GET" && head.path == "/socket/websocket" && head.body == .none)
        #expect(head.target == "/socket/websocket?apikey=eyJhbGciOiJIUzI1NiJ9.e30.abc&vsn=2.0.0")
        #expect(head.query("vsn") == "2.0.0" && head.query("none") == nil)
        #expect(head.field("host") == "hub.example.com:4000" && head.field("Host") == nil)
        #expect(head.fields.count == 13 && head.field("sec-websocket-key") == "dGhlIHNhbXBsZSBub25jZQ==")
        #expect(head.lists("upgrade", in: "connection") && head.lists("KEEP-alive", in: "connection"))
        #expect(!head.lists("up", in: "connection") && !head.lists("upgrade", in: "host"))
        #expect(head.keepsAlive && !head.isHTTP10 && !head.expectsContinue)
    }

    @Test(arguments: accepted) func isTaken(_ text: String) throws {
        let bytes = Array(text.utf8)
        let whole = readHead(bytes)
        guard case .complete(let head, let length) = whole else {
            Issue.record("\(whole)")
            return
        }
        #expect(bytes[..<length].suffix(4) == [13, 10, 13, 10], "the body begins behind the empty line")
        #expect(readHead(head.canonical).head == head, "written again, it reads the same")
        #expect(readHead(bytes, arrivals: 0...bytes.count) == whole, "byte by byte")
        for cut in 0...bytes.count { #expect(readHead(bytes, arrivals: [cut, bytes.count]) == whole) }
        for end in 0..<length { #expect(readHead(Array(bytes[..<end])) == .incomplete) }
        #expect(readHead(bytes + Array("\r\n\0GET".utf8)) == whole, "what follows is not looked at")
    }

    @Test func nothingHasArrivedYet() {
        var parser = HTTPHeadParser()
        var decoder = HTTPBodyDecoder(.chunked)
        var content: [UInt8] = []
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        #expect(ReadProgress(parser.parse(nothing)) == .incomplete)
        #expect(decoder.decode(nothing, into: &content) == (0, .incomplete))
    }

    @Test func pathAndQueryAreDecodedOnce() throws {
        let one = try head("GET /a%20b/%C3%A4%2F?x=%2B+1&y&=z&&x=2&q=a=b&%61+=%25%32%35 HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(one.path == "/a b/ä/")
        #expect(one.query.map(\.name) == ["x", "y", "", "x", "q", "a "])
        #expect(one.query.map(\.value) == ["+ 1", "", "z", "2", "a=b", "%25"])
        #expect(one.query("x") == "+ 1")
        #expect(try head("GET /a+b HTTP/1.1\r\nHost: x\r\n\r\n").path == "/a+b")
    }

    @Test func absoluteFormIsReduced() throws {
        let one = try head("GET HTTP://X:80?a=%20b HTTP/1.1\r\nHost: x:80\r\n\r\n")
        #expect(one.target == "/?a=%20b" && one.path == "/" && one.query("a") == " b" && one.field("host") == "x:80")
        #expect(try head("GET https://x/a?b=c HTTP/1.0\r\n\r\n").field("host") == "x")
        #expect(try head("OPTIONS http://x HTTP/1.1\r\nHost: x\r\n\r\n").target == "*")
        #expect(try head("CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n").target == "x:80")
    }

    @Test func framing() throws {
        func body(_ line: String, _ method: String = "POST") throws -> HTTPBodyFraming {
            try head("\(method) / HTTP/1.1\r\nHost: x\r\n\(line)\r\n\r\n").body
        }
        #expect(try body("A: b") == .none)
        #expect(try body("Content-Length: 0") == .length(0))
        #expect(try body("Content-Length:  007 ") == .length(7))
        #expect(try body("Content-Length: 0000000000000000005") == .length(5))
        #expect(try body("Content-Length: 9223372036854775807") == .length(.max))
        #expect(try body("Transfer-Encoding: CHUNKED") == .chunked)
        for method in ["GET", "HEAD", "DELETE"] { #expect(try body("content-length: 5", method) == .length(5)) }
        // Names that only begin like it.
        #expect(try body("Content-Lengt: 5\r\nContent: 4\r\nContent-Length-2: 6\r\nX-Content-Length: 7") == .none)
    }

    @Test func keepingAlive() throws {
        func keeps(_ version: String, _ line: String) throws -> Bool {
            try head("GET / HTTP/\(version)\r\nHost: x\r\n\(line)\r\n\r\n").keepsAlive
        }
        #expect(try keeps("1.1", "A: b") && keeps("1.1", "Connection: closed"))
        #expect(try !keeps("1.1", "Connection: a, CLOSE") && !keeps("1.1", "Connection: a\r\nConnection: close"))
        #expect(try !keeps("1.0", "A: b") && keeps("1.0", "Connection: Keep-Alive"))
        #expect(try !keeps("1.0", "Connection: keep-alive, close"))
    }

    @Test func expecting() throws {
        func expects(_ version: String, _ lines: String) throws -> Bool {
            try head("POST / HTTP/\(version)\r\nHost: x\r\nExpect: 100-continue\r\n\(lines)\r\n\r\n").expectsContinue
        }
        #expect(try expects("1.1", "Content-Length: 5") && expects("1.1", "Transfer-Encoding: chunked"))
        #expect(try !expects("1.0", "Content-Length: 5"), "RFC 9110, section 10.1.1")
        #expect(try !expects("1.1", "Content-Length: 0") && !expects("1.1", "A: b"))
    }

    @Test func repeatedFieldsAreAList() throws {
        let one = try head("GET / HTTP/1.1\r\nHost: x\r\nX: 1\r\nY: 3\r\nx:  2 \r\nX:\r\n\r\n")
        #expect(one.field("x") == "1, 2, " && one.field("y") == "3" && one.field("z") == nil)
        #expect(one.lists("2", in: "x") && !one.lists("3", in: "x") && !one.lists("1, 2", in: "x"))
    }

    @Test func limits() {
        let limits = HTTPLimits(headBytes: 64, fields: 3, targetBytes: 8)
        let line = "GET /1234567 HTTP/1.1\r\nHost: x\r\n"
        #expect(readHead(line + "A: b\r\nC: d\r\n\r\n", limits: limits).head != nil)
        #expect(readHead(line + "A: b\r\nC: d\r\nE: f\r\n\r\n", limits: limits).refusal?.status == 431)
        #expect(readHead("GET /12345678 HTTP/1.1\r\nHost: x\r\n\r\n", limits: limits).refusal?.status == 414)
        let room = 64 - line.utf8.count - 7
        #expect(readHead(line + "A: \(String(repeating: "b", count: room))\r\n\r\n", limits: limits).head != nil)
        #expect(
            readHead(line + "A: \(String(repeating: "b", count: room + 1))\r\n\r\n", limits: limits).refusal?.status
                == 431)
    }

    /// A parser that looked at all that has arrived each time would take hours for these.
    @Test(.timeLimit(.minutes(1)), arguments: [1, 170_000]) func aHeadThatDripsInCostsLinearTime(_ fields: Int) {
        let field = "A: " + String(repeating: "b", count: 1_000_000 / fields) + "\r\n"
        let text = "GET / HTTP/1.1\r\nHost: x\r\n" + String(repeating: field, count: fields) + "\r\n"
        let bytes = Array(text.utf8)
        let limits = HTTPLimits(headBytes: 4_000_000, fields: 200_000)
        #expect(readHead(bytes, arrivals: 0...bytes.count, limits: limits).head != nil)
    }
}
