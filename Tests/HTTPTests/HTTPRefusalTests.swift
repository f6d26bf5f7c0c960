import HTTP
import Testing

/// What follows for the connection from a request that is refused.
@Suite struct HTTPRefusalTests {
    @Test func aShortBodyThatIsNotWantedIsPassedOver() {
        let server = AnsweringServer()
        server.refusals = ["/no": 401]
        server.receive(post("/no", String(repeating: "x", count: 60_000)) + get("/2"))
        #expect(server.answers == ["401 /no", "200 /2"])
        #expect(server.bodies == [""])
    }

    @Test func aLongBodyThatIsNotWantedEndsTheConnectionBeforeAByteOfItIsKept() {
        let server = AnsweringServer()
        server.refusals = ["/no": 401]
        server.receive(post("/no", "", "content-length: 5000000\r\n"))
        #expect(server.answers == ["401 /no"])
        #expect(server.written.contains("connection: close\r\n"))
        #expect(server.isShut)
        for _ in 0..<5 {
            server.receive([UInt8](repeating: 0x78, count: 1_000_000))
            #expect(server.heldBytes == 0)
        }
        #expect(!server.isClosed, "a reset would take the answer away")
        server.pass(2)
        #expect(server.isClosed)
    }

    @Test func whoGoesOnSendingWithoutEndIsCutOff() {
        var limits = HTTPConnection.Limits()
        limits.lingerBytes = 1000
        let server = AnsweringServer(limits)
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
        let server = AnsweringServer(limits)
        server.receive(post("/1", "", "content-length: 11\r\n"))
        #expect(server.answers.first?.hasPrefix("413") == true)
        let chunked = AnsweringServer(limits)
        chunked.receive("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\na\r\n0123456789\r\n")
        #expect(chunked.answers.isEmpty)
        chunked.receive("1\r\nx")
        #expect(chunked.answers.first?.hasPrefix("413") == true)
        #expect(chunked.isShut)
        #expect(chunked.heldBytes == 0)
    }

    @Test func nothingBehindAMalformedRequestIsHeard() {
        let server = AnsweringServer()
        server.receive(
            "POST /1 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n" + get("/2"))
        #expect(server.paths == ["/1"])
        #expect(server.answers.count == 1)
        #expect(server.isShut)
    }

    @Test func tooMuchOfAllTogetherIsShed() {
        let server = AnsweringServer()
        server.receive(post("/1", "", "content-length: 100\r\n") + "half")
        #expect(server.heldBytes == 4)
        let isShed = server.connection.shed()
        #expect(isShed)
        server.run()
        #expect(server.answers.first?.hasPrefix("503") == true)
        #expect(server.written.contains("retry-after: 1\r\n"))
        #expect(server.heldBytes == 0)
    }
}
