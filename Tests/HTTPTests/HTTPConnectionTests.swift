import HTTP
import Testing

/// HTTP/1.1 without a socket: bytes in, requests and answers out, on a clock of the test's.
@Suite struct HTTPConnectionTests {
    @Test func requestsBehindEachOtherAreAnsweredInOrder() {
        let server = AnsweringServer()
        server.receive(
            post("/1", "one") + get("/2") + post("/3", "three")
                + "POST /4 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nfo\r\n2\r\nur\r\n0\r\n\r\n")
        #expect(server.bodies == ["one", "", "three", "four"])
        #expect(server.answers == ["200 /1", "200 /2", "200 /3", "200 /4"])
        #expect(!server.isShut)
        #expect(server.heldBytes == 0)
        #expect(server.isIdle)
    }

    /// Wherever the network cuts, the same is heard.
    @Test func everyPlaceToSplit() {
        let bytes = Array(
            (post("/1", "one") + post("/late", "2") + post("/no", "nobody wants this")
                + "POST /3 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nsix\r\n0\r\n\r\n"
                + get("/4", "HEAD")).utf8)
        let whole = AnsweringServer()
        whole.refusals = ["/no": 401]
        whole.receive(bytes)
        #expect(whole.bodies == ["one", "2", "six", ""])
        #expect(whole.answers == ["200 /1", "200 /late", "401 /no", "200 /3", "200 "])
        for place in 0...bytes.count {
            let server = AnsweringServer()
            server.refusals = whole.refusals
            server.receive(Array(bytes[..<place]))
            server.receive(Array(bytes[place...]))
            #expect(server.written == whole.written, "split at \(place)")
            #expect(server.bodies == whole.bodies)
        }
        let server = AnsweringServer()
        server.refusals = whole.refusals
        for byte in bytes { server.receive([byte]) }
        #expect(server.written == whole.written)
        #expect(server.heldBytes == 0)
    }

    @Test func whatComesBehindALateAnswerWaits() {
        let server = AnsweringServer()
        server.later = ["/late"]
        server.receive(post("/late", "a") + post("/next", "b"))
        server.receive(post("/last", "c"))
        #expect(server.paths == ["/late"])
        #expect(server.written.isEmpty)
        server.answer()
        server.run()
        #expect(server.answers == ["200 /late", "200 /next", "200 /last"])
    }

    @Test func noMoreIsReadThanMayWait() {
        var limits = HTTPConnection.Limits()
        limits.readAheadBytes = 100
        let server = AnsweringServer(limits)
        server.later = ["/late"]
        server.receive(get("/late"))
        #expect(server.wantsInput)
        server.receive([UInt8](repeating: 0x41, count: 100))
        #expect(!server.wantsInput)
    }

    @Test func nothingOfWhatComesBehindTheLastRequestIsKept() {
        let server = AnsweringServer()
        server.isBlocked = true
        server.receive("GET /1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n" + get("/2"))
        #expect(server.heldBytes == 0)
        server.receive(get("/3"))
        #expect(server.heldBytes == 0)
    }

    @Test func theNextRequestWaitsForASocketThatTakesNothing() {
        let server = AnsweringServer()
        server.isBlocked = true
        server.receive(get("/1") + get("/2"))
        #expect(server.paths == ["/1"])
        server.isBlocked = false
        server.run()
        #expect(server.answers == ["200 /1", "200 /2"])
    }

    @Test func answersThatAreTakenInPieces() {
        let server = AnsweringServer()
        server.isBlocked = true
        server.receive(get("/1") + get("/2"))
        var written: [UInt8] = []
        while server.connection.hasOutput {
            written.append(contentsOf: server.connection.output.prefix(1))
            server.connection.sent(1, at: 0)
            server.run()
        }
        #expect(String(decoding: written, as: UTF8.self).contains("/1HTTP/1.1 200 OK"))
        #expect(String(decoding: written, as: UTF8.self).hasSuffix("\r\n\r\n/2"))
    }

    @Test func whoWaitsIsToldToGoOnOnceItIsLetIn() {
        let server = AnsweringServer()
        server.refusals = ["/no": 401]
        let head = post("/yes", "", "expect: 100-continue\r\ncontent-length: 2\r\n")
        server.receive(head)
        #expect(server.written == "HTTP/1.1 100 Continue\r\n\r\n")
        server.receive("{}")
        #expect(server.bodies == ["{}"])
        #expect(server.answers.last == "200 /yes")
        // Who sent the body already is not told.
        server.receive(head + "{}")
        #expect(server.answers.count == 3)
        // Who is refused may send the body or not: nobody could tell where the next request begins.
        server.receive(post("/no", "", "expect: 100-continue\r\ncontent-length: 2\r\n"))
        #expect(server.answers.last == "401 /no")
        #expect(server.isShut)
    }

    // MARK: The form of answers

    @Test func headsOfAnswers() {
        let server = AnsweringServer()
        server.receive(get("/long", "HEAD"))
        #expect(server.written.contains("content-length: 5\r\n"))
        #expect(server.written.hasSuffix("\r\n\r\n"))
        server.written = ""
        server.refusals = ["/204": 204, "/422": 422, "/401": 401]
        server.receive(get("/204"))
        #expect(server.written.hasPrefix("HTTP/1.1 204 No Content\r\n"))
        #expect(!server.written.contains("content-length"))
        server.receive(get("/422"))
        #expect(server.written.contains("HTTP/1.1 422 Unprocessable Content\r\n"))
        server.receive(get("/401"))
        #expect(server.written.contains("www-authenticate: Bearer\r\n"))
        #expect(!server.isShut)
    }

    @Test func theLastRequestOfAConnection() {
        for (lines, version) in [("connection: close\r\n", "1.1"), ("", "1.0"), ("connection: keep-alive\r\n", "1.0")] {
            let server = AnsweringServer()
            server.receive("GET /1 HTTP/\(version)\r\nhost: x\r\n\(lines)\r\n" + get("/2"))
            #expect(server.answers == ["200 /1"])
            #expect(server.written.contains("connection: close\r\n"))
            #expect(server.isShut)
        }
        let draining = AnsweringServer()
        draining.receive("GET /1 HTTP/1.1\r\n")
        draining.connection.isLast = true
        draining.receive("host: x\r\n\r\n")
        #expect(draining.written.contains("connection: close\r\n"))
        #expect(draining.isShut)
    }

    // MARK: Upgrades

    @Test func everyByteBehindAnUpgradeIsHandedOver() {
        let frames: [UInt8] = [0x81, 0x85, 1, 2, 3, 4, 0, 0xFF, 0]
        let bytes = Array((post("/1", "one") + get("/socket")).utf8)
        for place in 0...bytes.count {
            let server = AnsweringServer()
            server.receive(Array(bytes[..<place]))
            if server.handedOver == nil {
                server.receive(Array(bytes[place...]) + frames)
                #expect(server.handedOver == frames, "split at \(place)")
            } else {
                #expect(server.handedOver == [])
            }
            #expect(server.answers == ["200 /1"])
            #expect(server.heldBytes == 0)
        }
    }
}
