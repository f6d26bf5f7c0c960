import HTTP
import Testing

/// Answers that go on, and bodies that are taken as they come.
@Suite struct HTTPStreamingTests {
    private func upload(_ path: String, _ body: String = "", _ more: String = "") -> String {
        "POST \(path) HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\(more)\r\n\(body)"
    }

    // MARK: Answers

    @Test func anAnswerThatGoesOnIsInChunksAndTheConnectionIsKept() {
        let server = AnsweringServer()
        server.streaming = ["/events"]
        server.receive(get("/events"))
        #expect(server.written.contains("transfer-encoding: chunked\r\n") && !server.written.contains("content-length"))
        server.endStream()
        server.receive(get("/next"))
        #expect(server.paths == ["/events", "/next"] && !server.isShut && server.heldBytes == 0)
    }

    @Test func withHTTP10TheEndOfTheConnectionIsTheEndOfTheAnswer() {
        let server = AnsweringServer()
        server.streaming = ["/events"]
        server.receive("GET /events HTTP/1.0\r\nhost: x\r\n\r\n")
        #expect(!server.written.contains("transfer-encoding") && server.written.contains("connection: close\r\n"))
        server.endStream()
        #expect(server.isShut)
    }

    @Test func aRequestBehindItWaitsForItsEnd() {
        let server = AnsweringServer()
        server.streaming = ["/events"]
        server.receive(get("/events") + get("/next"))
        #expect(server.paths == ["/events"] && server.wantsInput)
        server.pass(1000)
        #expect(!server.isClosed && server.paths == ["/events"])
        server.endStream()
        #expect(server.paths == ["/events", "/next"])
    }

    @Test func whoSendsTooMuchBehindItIsCutOff() {
        var limits = HTTPConnection.Limits()
        limits.readAheadBytes = 100
        let server = AnsweringServer(limits)
        server.streaming = ["/events"]
        server.receive(get("/events"))
        server.receive(String(repeating: "x", count: 99))
        #expect(!server.isClosed)
        server.receive("x")
        #expect(server.isClosed)
    }

    @Test func beforeAnEndOfTheHubItIsTheLast() {
        let server = AnsweringServer()
        server.streaming = ["/events"]
        server.receive(get("/events"))
        server.connection.isLast = true
        server.endStream()
        #expect(server.isShut)
    }

    // MARK: Bodies

    @Test func piecesComeOneByOneAndNothingIsReadBetween() {
        let server = AnsweringServer()
        server.piecewise = ["/up"]
        server.receive(upload("/up", "3\r\none\r\n"))
        #expect(server.pieces.isEmpty && !server.wantsInput, "it is not let in yet")
        server.goOn()
        #expect(server.pieces == ["one"] && !server.wantsInput)
        server.receive("3\r\ntwo\r\n5\r\nthree\r\n")
        #expect(server.pieces == ["one"])
        server.goOn()
        #expect(server.pieces == ["one", "twothree"])
        server.goOn()
        #expect(server.pieces.count == 2 && server.wantsInput)
        server.receive("4\r\nlast\r\n0\r\n\r\n" + get("/next"))
        #expect(server.bodies == ["last", ""] && server.answers == ["200 /up", "200 /next"])
    }

    @Test func everyPlaceToSplitABody() {
        let bytes = Array(upload("/up", "3\r\none\r\nA\r\n0123456789\r\n0\r\n\r\n" + get("/next")).utf8)
        for place in 0...bytes.count {
            let server = AnsweringServer()
            server.piecewise = ["/up"]
            for part in [bytes[..<place], bytes[place...]] {
                server.receive(Array(part))
                for _ in 0..<4 { server.goOn() }
            }
            #expect((server.pieces + server.bodies).joined() == "one0123456789", "split at \(place)")
            #expect(server.answers == ["200 /up", "200 /next"])
        }
    }

    @Test func anAnswerInTheMiddleEndsTheConnection() {
        let server = AnsweringServer()
        server.piecewise = ["/up"]
        server.receive(upload("/up", "3\r\none\r\n"))
        server.goOn()
        server.answer()
        server.run()
        #expect(server.written.contains("connection: close") && server.isShut)
        server.receive("3\r\ntwo\r\n" + get("/next"))
        #expect(server.paths == ["/up"] && server.heldBytes == 0)
    }

    @Test func whoIsToldToGoOnIsToldAtOnce() {
        let server = AnsweringServer()
        server.piecewise = ["/up"]
        server.receive(upload("/up", "", "expect: 100-continue\r\n"))
        #expect(server.written == "HTTP/1.1 100 Continue\r\n\r\n")
    }

    @Test func aBodyThatIsNoneIsRefused() {
        let server = AnsweringServer()
        server.piecewise = ["/up"]
        server.receive(upload("/up", "3\r\none\r\nxyz\r\n"))
        server.goOn()
        server.goOn()
        #expect(server.answers.first?.hasPrefix("400") == true && server.isShut)
    }

    @Test func silenceEndsItInTheEnd() {
        let server = AnsweringServer()
        server.piecewise = ["/up"]
        server.receive(upload("/up", "3\r\none\r\n"))
        server.goOn()
        server.goOn()
        server.pass(299)
        #expect(server.written.isEmpty)
        server.pass(1)
        #expect(server.answers.first?.hasPrefix("408") == true)
    }
}
