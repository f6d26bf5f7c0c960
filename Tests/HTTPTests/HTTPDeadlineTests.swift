import Testing

/// How long a connection may take for what, on a clock of the test's.
@Suite struct HTTPDeadlineTests {
    @Test func whoSaysNothing() {
        let server = AnsweringServer()
        server.pass(9)
        #expect(!server.isClosed)
        server.pass(1)
        #expect(server.isClosed)
        #expect(server.written.isEmpty)
    }

    @Test func aHeadThatDripsIn() {
        let server = AnsweringServer()
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
        let server = AnsweringServer()
        server.receive(post("/1", "", "content-length: 1000\r\n"))
        while !server.isShut, server.second < 1000 {
            server.receive("x")
            server.pass(1)
        }
        #expect(server.second == 30)
        #expect(server.answers.first?.hasPrefix("408") == true)
        #expect(server.heldBytes == 0)
    }

    @Test func whoIsIdleIsClosedLaterThanProxiesClose() {
        let server = AnsweringServer()
        server.pass(5)
        server.receive(get("/1"))
        server.pass(74)
        #expect(!server.isClosed)
        server.receive(get("/2"))
        server.pass(74)
        #expect(!server.isClosed)
        server.pass(1)
        #expect(server.isClosed)
    }

    @Test func anAnswerMayTakeItsTime() {
        let server = AnsweringServer()
        server.later = ["/1"]
        server.receive(get("/1"))
        server.pass(1000)
        #expect(!server.isClosed)
        server.answer()
        server.run()
        #expect(server.answers == ["200 /1"])
    }

    /// The time counts from the last byte that the socket took.
    @Test func whoReadsItsAnswerSlowlyGetsAllOfIt() {
        let server = AnsweringServer()
        server.isBlocked = true
        server.receive(get("/1"))
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
        let server = AnsweringServer()
        server.refusals = ["/no": 401]
        server.receive(post("/no", "", "content-length: 1000\r\n"))
        while !server.isClosed, server.second < 1000 {
            server.receive("x")
            server.pass(1)
        }
        #expect(server.second == 30)
        #expect(server.answers == ["401 /no"])
    }

    @Test func whoDoesNotReadItsAnswerIsClosed() {
        let server = AnsweringServer()
        server.isBlocked = true
        server.receive(get("/1"))
        server.pass(74)
        #expect(!server.isClosed)
        server.pass(1)
        #expect(server.isClosed)
    }
}
