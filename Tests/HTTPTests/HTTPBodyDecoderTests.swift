import HTTP
import Testing

@Suite struct HTTPBodyDecoderTests {
    /// Chunked bodies and their content.
    static let whole: [(body: String, content: String)] = [
        ("0\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("1\r\na\r\n1\r\nb\r\n000\r\n\r\n", "ab"),
        ("a;b=c;d=\"e f\" ; g\r\n0123456789\r\n0;z\r\n\r\n", "0123456789"),
        ("000000000000000A\r\n\r\n0\r\n\r\n0\r\n\r\n0\r\n\r\n", "\r\n0\r\n\r\n0\r\n"),
        ("2\r\nhi\r\n0\r\nX-Sum: 1\r\ny:\r\n\r\n", "hi"),
        ("2\r\nhi\r\n0\r\nName: Zoë\r\n\r\n", "hi"),
    ]

    static let refused: [String: String] = [
        "\r\n": "size", "x\r\n": "size", "0x5\r\nhello": "size", "+5\r\nhello": "size", "-1\r\n": "size",
        " 5\r\nhello": "size",
        "5 \r\nhello": "size", "5\t;a\r\nhello": "size", "5,\r\n": "size", "\"5\"\r\n": "size", "5\nhello\r\n": "size",
        "5\rhello\r\n": "size", "5\r\rhello": "size", "00000000000000005\r\nhello": "size",
        "8000000000000000\r\n": "size",
        "ffffffffffffffff\r\n": "size", "5;a\nhello": "extension", "5;a\rb\r\n": "size", "5;\0\r\n": "extension",
        "5;ä\r\n": "extension",
        "5\r\nhelloX\r\n": "end with", "5\r\nhello\n0\r\n\r\n": "end with", "5\r\nhello\r0": "end with",
        "5\r\nhello0\r\n\r\n": "end with", "5\r\nhello\r\n\r\n": "size", "0\r\nA\r\n\r\n": "colon between",
        "0\r\nA: b\n\r\n": "end with", "0\r\n\n": "end with", "0\r\n A: b\r\n\r\n": "one line",
        "0\r\nA : b\r\n\r\n": "No space",
        "0\r\nA: b\r\n c\r\n\r\n": "one line", "0\r\nA: \0\r\n\r\n": "control",
        "0\r\nA: b\rc\r\n\r\n": "carriage return",
        "0\r\nContent-Length: 5\r\n\r\n": "trailers", "0\r\ntransfer-encoding: chunked\r\n\r\n": "trailers",
        "0\r\nHost: x\r\n\r\n": "trailers", "0\r\nÄ: ö\r\n\r\n": "letters, digits",
    ]

    @Test(arguments: whole.map(\.body)) func isRead(_ body: String) {
        let bytes = Array(body.utf8)
        let content = Self.whole.first { $0.body == body }.map { Array($0.content.utf8) } ?? []
        let read = ReadBody(content: content, consumed: bytes.count, progress: .complete)
        #expect(readBody(bytes, .chunked) == read)
        #expect(readBody(bytes + Array("5\r\nGET".utf8), .chunked) == read, "what follows is the next request")
        for cut in 0...bytes.count { #expect(readBody(bytes, .chunked, cuts: [cut]) == read, "cut at \(cut)") }
        #expect(readBody(bytes, .chunked, cuts: 0...bytes.count) == read, "byte by byte")
        for end in 0..<bytes.count { #expect(readBody(Array(bytes[..<end]), .chunked).progress == .incomplete) }
    }

    @Test(arguments: refused.keys.sorted()) func isRefused(_ body: String) throws {
        let bytes = Array(body.utf8)
        let whole = readBody(bytes, .chunked)
        let says = try #require(Self.refused[body])
        guard case .refused(let refusal) = whole.progress else {
            Issue.record("\(whole)")
            return
        }
        #expect(refusal.status == 400 && refusal.message.contains(says), "\(refusal.message)")
        for cut in 0...bytes.count { #expect(readBody(bytes, .chunked, cuts: [cut]) == whole, "cut at \(cut)") }
        #expect(readBody(bytes, .chunked, cuts: 0...bytes.count) == whole, "byte by byte")
    }

    @Test func aLength() {
        let bytes = Array("hello, world".utf8)
        #expect(readBody(bytes, .none) == ReadBody(progress: .complete))
        #expect(readBody(bytes, .length(0)) == ReadBody(progress: .complete))
        #expect(readBody([], .length(0)) == ReadBody(progress: .complete))
        #expect(readBody([], .length(1)) == ReadBody())
        for cut in 0...12 {
            #expect(
                readBody(bytes, .length(5), cuts: [cut])
                    == ReadBody(content: Array(bytes[..<5]), consumed: 5, progress: .complete))
        }
        #expect(readBody(bytes, .length(.max)) == ReadBody(content: bytes, consumed: 12))
    }

    @Test func whatIsSkippedIsBounded() {
        let long = String(repeating: "a", count: 17_000)
        let chunks = String(repeating: "1;\(String(repeating: "a", count: 99))\r\nx\r\n", count: 200)
        for (body, status) in [
            ("1;\(long)", 400), (chunks, 400), ("0\r\nA: \(long)", 431),
            ("0\r\n" + String(repeating: "A: b\r\n", count: 3_000), 431),
        ] {
            let bytes = Array(body.utf8)
            let whole = readBody(bytes, .chunked)
            guard case .refused(let refusal) = whole.progress else {
                Issue.record("\(whole.progress)")
                continue
            }
            #expect(refusal.status == status && refusal.message.contains("16384"))
            #expect(readBody(bytes, .chunked, cuts: 0...bytes.count) == whole)
        }
    }

    @Test func aRefusedBodyStaysRefused() {
        var decoder = HTTPBodyDecoder(.chunked)
        var content: [UInt8] = []
        let first = Array("x".utf8).withUnsafeBytes { decoder.decode($0, into: &content) }
        let second = Array("5\r\nhello\r\n0\r\n\r\n".utf8).withUnsafeBytes { decoder.decode($0, into: &content) }
        #expect(first.1 == second.1 && first.1 != .incomplete && second.consumed == 0 && content.isEmpty)
    }
}
