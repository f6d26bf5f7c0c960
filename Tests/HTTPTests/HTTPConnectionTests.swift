import HTTP
import Testing

/// HTTP/1.1 without a socket: bytes in, requests and answers out, on a clock of the test's.
@Suite struct HTTPConnectionTests {
    /// A server that answers each request with its own path, and keeps what it is told.
    private struct Server {
        var connection: HTTPConnection
        var second: Int32 = 0
        var bodies: [String] = []
        var paths: [String] = []
        var written = ""
        var isShut = false
        var isClosed = false
        /// What is said to a head by its path; others are let in.
        var refusals: [String: UInt32] = [:]
        /// Paths that are answered later.
        var later: Set<String> = []
        /// The socket takes nothing.
        var isBlocked = false
        var handedOver: [UInt8]?

        init(_ limits: HTTPConnection.Limits = HTTPConnection.Limits()) {
            connection = HTTPConnection(limits: limits, at: 0)
        }

        mutating func receive(_ text: String) { receive(Array(text.utf8)) }

        mutating func receive(_ bytes: [UInt8]) {
            bytes.withUnsafeBytes { run($0) }
        }

        mutating func run(_ bytes: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)) {
            var input = bytes
            while true {
                switch connection.advance(&input, at: second) {
                case .wait:
                    #expect(input.isEmpty, "what was not taken would be lost")
                    if isBlocked || !connection.hasOutput { return }
                    written += String(decoding: connection.output, as: UTF8.self)
                    connection.sent(connection.output.count, at: second)
                case .judge(let head):
                    paths.append(head.path)
                    if head.path == "/socket" {
                        handedOver = connection.takeRest(input)
                        return
                    }
                    if let status = refusals[head.path] {
                        connection.answer(.text(status, head.path), at: second)
                    } else {
                        connection.admit(input, at: second)
                    }
                case .perform(let body):
                    bodies.append(String(decoding: body, as: UTF8.self))
                    if !later.contains(paths.last ?? "") { answer() }
                case .refuse(let response): connection.answer(response, closes: true, at: second)
                case .shutDown: isShut = true
                case .close:
                    isClosed = true
                    return
                }
            }
        }

        mutating func answer() {
            connection.answer(.text(200, paths.last ?? ""), at: second)
        }

        mutating func pass(_ seconds: Int32) {
            for _ in 0..<seconds {
                second += 1
                if connection.expire(at: second) { run() }
            }
        }

        /// Status and body of each answer, in order.
        var answers: [String] {
            written.components("HTTP/1.1 ").dropFirst().map { answer in
                let parts = answer.components("\r\n\r\n")
                return "\(answer.prefix(3)) \(parts.dropFirst().first ?? "")"
            }
        }
    }

    private static func post(_ path: String, _ body: String = "", _ lines: String = "") -> String {
        let length = body.isEmpty ? "" : "content-length: \(body.utf8.count)\r\n"
        return "POST \(path) HTTP/1.1\r\nhost: x\r\n\(lines)\(length)\r\n\(body)"
    }

    private static func get(_ path: String, _ method: String = "GET") -> String {
        "\(method) \(path) HTTP/1.1\r\nhost: x\r\n\r\n"
    }

    @Test func requestsBehindEachOtherAreAnsweredInOrder() {
        var server = Server()
        server.receive(
            Self.post("/1", "one") + Self.get("/2") + Self.post("/3", "three")
                + "POST /4 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nfo\r\n2\r\nur\r\n0\r\n\r\n")
        #expect(server.bodies == ["one", "", "three", "four"])
        #expect(server.answers == ["200 /1", "200 /2", "200 /3", "200 /4"])
        #expect(!server.isShut)
        #expect(server.connection.heldBytes == 0)
        #expect(server.connection.isIdle)
    }

    /// Wherever the network cuts, the same is heard.
    @Test func everyPlaceToSplit() {
        let bytes = Array(
            (Self.post("/1", "one") + Self.post("/late", "2") + Self.post("/no", "nobody wants this")
                + "POST /3 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nsix\r\n0\r\n\r\n"
                + Self.get("/4", "HEAD")).utf8)
        var whole = Server()
        whole.refusals = ["/no": 401]
        whole.receive(bytes)
        #expect(whole.bodies == ["one", "2", "six", ""])
        #expect(whole.answers == ["200 /1", "200 /late", "401 /no", "200 /3", "200 "])
        for place in 0...bytes.count {
            var server = Server()
            server.refusals = whole.refusals
            server.receive(Array(bytes[..<place]))
            server.receive(Array(bytes[place...]))
            #expect(server.written == whole.written, "split at \(place)")
            #expect(server.bodies == whole.bodies)
        }
        var server = Server()
        server.refusals = whole.refusals
        for byte in bytes { server.receive([byte]) }
        #expect(server.written == whole.written)
        #expect(server.connection.heldBytes == 0)
    }

    @Test func whatComesBehindALateAnswerWaits() {
        var server = Server()
        server.later = ["/late"]
        server.receive(Self.post("/late", "a") + Self.post("/next", "b"))
        server.receive(Self.post("/last", "c"))
        #expect(server.paths == ["/late"])
        #expect(server.written.isEmpty)
        server.answer()
        server.run()
        #expect(server.answers == ["200 /late", "200 /next", "200 /last"])
    }

    @Test func noMoreIsReadThanMayWait() {
        var limits = HTTPConnection.Limits()
        limits.readAheadBytes = 100
        var server = Server(limits)
        server.later = ["/late"]
        server.receive(Self.get("/late"))
        #expect(server.connection.wantsInput)
        server.receive([UInt8](repeating: 0x41, count: 100))
        #expect(!server.connection.wantsInput)
    }

    @Test func nothingOfWhatComesBehindTheLastRequestIsKept() {
        var server = Server()
        server.isBlocked = true
        server.receive("GET /1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n" + Self.get("/2"))
        #expect(server.connection.heldBytes == 0)
        server.receive(Self.get("/3"))
        #expect(server.connection.heldBytes == 0)
    }

    @Test func theNextRequestWaitsForASocketThatTakesNothing() {
        var server = Server()
        server.isBlocked = true
        server.receive(Self.get("/1") + Self.get("/2"))
        #expect(server.paths == ["/1"])
        server.isBlocked = false
        server.run()
        #expect(server.answers == ["200 /1", "200 /2"])
    }

    @Test func answersThatAreTakenInPieces() {
        var server = Server()
        server.isBlocked = true
        server.receive(Self.get("/1") + Self.get("/2"))
        var written: [UInt8] = []
        while server.connection.hasOutput {
            written.append(contentsOf: server.connection.output.prefix(1))
            server.connection.sent(1, at: 0)
            server.run()
        }
        #expect(String(decoding: written, as: UTF8.self).contains("/1HTTP/1.1 200 OK"))
        #expect(String(decoding: written, as: UTF8.self).hasSuffix("\r\n\r\n/2"))
    }

    // MARK: 100 Continue

    @Test func whoWaitsIsToldToGoOnOnceItIsLetIn() {
        var server = Server()
        server.refusals = ["/no": 401]
        let head = Self.post("/yes", "", "expect: 100-continue\r\ncontent-length: 2\r\n")
        server.receive(head)
        #expect(server.written == "HTTP/1.1 100 Continue\r\n\r\n")
        server.receive("{}")
        #expect(server.bodies == ["{}"])
        #expect(server.answers.last == "200 /yes")
        // Who sent the body already is not told.
        server.receive(head + "{}")
        #expect(server.answers.count == 3)
        // Who is refused may send the body or not: nobody could tell where the next request begins.
        server.receive(Self.post("/no", "", "expect: 100-continue\r\ncontent-length: 2\r\n"))
        #expect(server.answers.last == "401 /no")
        #expect(server.isShut)
    }

    // MARK: Refusals

    @Test func aShortBodyThatIsNotWantedIsPassedOver() {
        var server = Server()
        server.refusals = ["/no": 401]
        server.receive(Self.post("/no", String(repeating: "x", count: 60_000)) + Self.get("/2"))
        #expect(server.answers == ["401 /no", "200 /2"])
        #expect(server.bodies == [""])
    }

    @Test func aLongBodyThatIsNotWantedEndsTheConnectionBeforeAByteOfItIsKept() {
        var server = Server()
        server.refusals = ["/no": 401]
        server.receive(Self.post("/no", "", "content-length: 5000000\r\n"))
        #expect(server.answers == ["401 /no"])
        #expect(server.written.contains("connection: close\r\n"))
        #expect(server.isShut)
        for _ in 0..<5 {
            server.receive([UInt8](repeating: 0x78, count: 1_000_000))
            #expect(server.connection.heldBytes == 0)
        }
        #expect(!server.isClosed, "a reset would take the answer away")
        server.pass(2)
        #expect(server.isClosed)
    }

    @Test func whoGoesOnSendingWithoutEndIsCutOff() {
        var limits = HTTPConnection.Limits()
        limits.lingerBytes = 1000
        var server = Server(limits)
        server.receive("nonsense\r\n\r\n")
        #expect(server.answers.first?.hasPrefix("400") == true)
        server.receive([UInt8](repeating: 0, count: 999))
        #expect(!server.isClosed)
        server.receive([0])
        #expect(server.isClosed)
    }

    @Test func aBodyOverTheLimitIsRefusedByItsLengthOrWhenItGetsThere() {
        var limits = HTTPConnection.Limits()
        limits.bodyBytes = 10
        var server = Server(limits)
        server.receive(Self.post("/1", "", "content-length: 11\r\n"))
        #expect(server.answers.first?.hasPrefix("413") == true)
        var chunked = Server(limits)
        chunked.receive("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\na\r\n0123456789\r\n")
        #expect(chunked.answers.isEmpty)
        chunked.receive("1\r\nx")
        #expect(chunked.answers.first?.hasPrefix("413") == true)
        #expect(chunked.isShut)
        #expect(chunked.connection.heldBytes == 0)
    }

    @Test func nothingBehindAMalformedRequestIsHeard() {
        var server = Server()
        server.receive(
            "POST /1 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n" + Self.get("/2"))
        #expect(server.paths == ["/1"])
        #expect(server.answers.count == 1)
        #expect(server.isShut)
    }

    @Test func tooMuchOfAllTogetherIsShed() {
        var server = Server()
        server.receive(Self.post("/1", "", "content-length: 100\r\n") + "half")
        #expect(server.connection.heldBytes == 4)
        let isShed = server.connection.shed()
        #expect(isShed)
        server.run()
        #expect(server.answers.first?.hasPrefix("503") == true)
        #expect(server.written.contains("retry-after: 1\r\n"))
        #expect(server.connection.heldBytes == 0)
    }

    // MARK: The form of answers

    @Test func headsOfAnswers() {
        var server = Server()
        server.receive(Self.get("/long", "HEAD"))
        #expect(server.written.contains("content-length: 5\r\n"))
        #expect(server.written.hasSuffix("\r\n\r\n"))
        server.written = ""
        server.refusals = ["/204": 204, "/422": 422, "/401": 401]
        server.receive(Self.get("/204"))
        #expect(server.written.hasPrefix("HTTP/1.1 204 No Content\r\n"))
        #expect(!server.written.contains("content-length"))
        server.receive(Self.get("/422"))
        #expect(server.written.contains("HTTP/1.1 422 Unprocessable Content\r\n"))
        server.receive(Self.get("/401"))
        #expect(server.written.contains("www-authenticate: Bearer\r\n"))
        #expect(!server.isShut)
    }

    @Test func theLastRequestOfAConnection() {
        for (lines, version) in [("connection: close\r\n", "1.1"), ("", "1.0"), ("connection: keep-alive\r\n", "1.0")] {
            var server = Server()
            server.receive("GET /1 HTTP/\(version)\r\nhost: x\r\n\(lines)\r\n" + Self.get("/2"))
            #expect(server.answers == ["200 /1"])
            #expect(server.written.contains("connection: close\r\n"))
            #expect(server.isShut)
        }
        var draining = Server()
        draining.receive("GET /1 HTTP/1.1\r\n")
        draining.connection.isLast = true
        draining.receive("host: x\r\n\r\n")
        #expect(draining.written.contains("connection: close\r\n"))
        #expect(draining.isShut)
    }

    // MARK: Upgrades

    @Test func everyByteBehindAnUpgradeIsHandedOver() {
        let frames: [UInt8] = [0x81, 0x85, 1, 2, 3, 4, 0, 0xFF, 0]
        let bytes = Array((Self.post("/1", "one") + Self.get("/socket")).utf8)
        for place in 0...bytes.count {
            var server = Server()
            server.receive(Array(bytes[..<place]))
            if server.handedOver == nil {
                server.receive(Array(bytes[place...]) + frames)
                #expect(server.handedOver == frames, "split at \(place)")
            } else {
                #expect(server.handedOver == [])
            }
            #expect(server.answers == ["200 /1"])
            #expect(server.connection.heldBytes == 0)
        }
    }

    // MARK: Time

    @Test func whoSaysNothing() {
        var server = Server()
        server.pass(9)
        #expect(!server.isClosed)
        server.pass(1)
        #expect(server.isClosed)
        #expect(server.written.isEmpty)
    }

    @Test func aHeadThatDripsIn() {
        var server = Server()
        for byte in "GET / HTTP/1.1\r\nhost".utf8 where !server.isShut {
            server.receive([byte])
            server.pass(1)
        }
        #expect(server.second == 10)
        #expect(server.answers.first?.hasPrefix("408") == true)
        server.pass(2)
        #expect(server.isClosed)
    }

    @Test func aBodyThatDripsIn() {
        var server = Server()
        server.receive(Self.post("/1", "", "content-length: 1000\r\n"))
        while !server.isShut, server.second < 1000 {
            server.receive("x")
            server.pass(1)
        }
        #expect(server.second == 30)
        #expect(server.answers.first?.hasPrefix("408") == true)
        #expect(server.connection.heldBytes == 0)
    }

    @Test func whoIsIdleIsClosedLaterThanProxiesClose() {
        var server = Server()
        server.pass(5)
        server.receive(Self.get("/1"))
        server.pass(74)
        #expect(!server.isClosed)
        server.receive(Self.get("/2"))
        server.pass(74)
        #expect(!server.isClosed)
        server.pass(1)
        #expect(server.isClosed)
    }

    @Test func anAnswerMayTakeItsTime() {
        var server = Server()
        server.later = ["/1"]
        server.receive(Self.get("/1"))
        server.pass(1000)
        #expect(!server.isClosed)
        server.answer()
        server.run()
        #expect(server.answers == ["200 /1"])
    }

    /// The time counts from the last byte that the socket took.
    @Test func whoReadsItsAnswerSlowlyGetsAllOfIt() {
        var server = Server()
        server.isBlocked = true
        server.receive(Self.get("/1"))
        while server.connection.hasOutput, !server.isClosed {
            server.pass(70)
            server.connection.sent(min(40, server.connection.output.count), at: server.second)
        }
        server.run()
        #expect(server.second > 75 && !server.isClosed)
        server.pass(75)
        #expect(server.isClosed)
    }

    @Test func aBodyThatIsPassedOverMayNotDripEither() {
        var server = Server()
        server.refusals = ["/no": 401]
        server.receive(Self.post("/no", "", "content-length: 1000\r\n"))
        while !server.isClosed, server.second < 1000 {
            server.receive("x")
            server.pass(1)
        }
        #expect(server.second == 30)
        #expect(server.answers == ["401 /no"])
    }

    @Test func whoDoesNotReadItsAnswerIsClosed() {
        var server = Server()
        server.isBlocked = true
        server.receive(Self.get("/1"))
        server.pass(74)
        #expect(!server.isClosed)
        server.pass(1)
        #expect(server.isClosed)
    }
}

extension String {
    fileprivate func components(_ separator: String) -> [String] {
        var parts: [String] = []
        var rest = self[...]
        while let range = rest.firstRange(of: separator) {
            parts.append(String(rest[..<range.lowerBound]))
            rest = rest[range.upperBound...]
        }
        return parts + [String(rest)]
    }
}
