import DurableStreams
import HTTP
import Streams
import Testing

/// What readers are answered.
@Suite struct StreamPageTests {
    private func reading(_ query: String, _ fields: String...) throws -> StreamReading {
        let head = fields.isEmpty ? try call("GET /streams/a?" + query) : try call("GET /streams/a?" + query, fields[0])
        guard case .read(let reading) = head.action else { throw NoHead(text: query) }
        return reading
    }

    private func page(_ stream: StreamBuffer, _ query: String, _ fields: String...) throws -> HTTPResponse {
        let asked = fields.isEmpty ? try reading(query) : try reading(query, fields[0])
        guard case .answered(let response) = StreamPage(of: stream, asked, cursor: { "5" }) else {
            throw NoHead(text: query)
        }
        return response
    }

    private let first = "offset=0000000000000007_0000000000000000"

    @Test func textFromAnyOffset() throws {
        let stream = try stream("text/plain", Array("Grüße".utf8))
        let all = try page(stream, first)
        #expect(all.status == 200 && all.text == "Grüße" && all.contentType == "text/plain")
        #expect(all["stream-next-offset"] == "0000000000000007_0000000000000007" && all["stream-up-to-date"] == "true")
        #expect(all["stream-closed"] == nil && all["x-content-type-options"] == "nosniff")
        #expect(try page(stream, "offset=0000000000000007_0000000000000004").text == "ße")
        #expect(try page(stream, "offset=0000000000000007_0000000000000003").status == 400, "within a character")
        #expect(try page(stream, "offset=0000000000000007_0000000000000008").status == 410)
        let other = try page(stream, "offset=0000000000000008_0000000000000004")
        #expect(other.status == 410 && other["stream-generation"] == "7", "of another generation")
        let end = try page(stream, "offset=0000000000000007_0000000000000007")
        #expect(end.status == 200 && end.body.isEmpty && end["stream-up-to-date"] == "true")
    }

    @Test(arguments: [
        ("text/plain; charset=utf-8", true), ("application/json", true), ("image/png", true), ("video/mp4", true),
        ("application/octet-stream", false), ("text/html", false), ("Text/HTML;charset=utf-8", false),
        ("image/svg+xml", false), ("application/xhtml+xml", false), ("application/xml", false), ("text/xml", false),
        ("text/javascript", false), ("application/pdf", false), ("multipart/x-mixed-replace;boundary=a", false),
        ("message/rfc822", false), ("x", false), ("text/plain,text/html", false), ("text/plain;a=b, text/html", false),
    ])
    func whatABrowserMightRunIsDownloaded(type: String, isShown: Bool) throws {
        let stream = try stream(type, Array("<script>1</script>\n".utf8))
        for answer in [
            StreamResponse.describeStream(stream.snapshot), try page(stream, "offset=now"),
            StreamResponse.makeResponse(.created(stream.snapshot), to: try call("PUT /streams/a"), url: ""),
        ] {
            #expect(answer["content-disposition"] == (isShown ? nil : "attachment"))
            #expect(answer["content-security-policy"] == "default-src 'none'; sandbox")
            #expect(answer["x-content-type-options"] == "nosniff")
        }
    }

    @Test func messagesAsAnArray() throws {
        let stream = try stream("application/json", Array("{\"a\":1}\n".utf8), Array("[2]\n\"x\"\n".utf8))
        #expect(try page(stream, first).text == "[{\"a\":1},[2],\"x\"]")
        #expect(try page(stream, "offset=0000000000000007_0000000000000008").text == "[[2],\"x\"]")
        #expect(try page(stream, "offset=0000000000000007_0000000000000009").status == 400, "within a message")
        #expect(try page(stream, "offset=0000000000000007_0000000000000016").text == "[]")
        let now = try page(stream, "offset=now")
        #expect(
            now.text == "[]" && now["stream-next-offset"] == "0000000000000007_0000000000000016"
                && now["cache-control"] == "no-store")
    }

    @Test func theEndIsSaidAtTheEnd() throws {
        let stream = try stream("text/plain", [UInt8](repeating: 0x78, count: StreamPage.bytes + 10))
        _ = stream.setStatus(.ended(StreamEnding(.cancelled, at: 0)))
        let part = try page(stream, first)
        #expect(part.body.count == StreamPage.bytes && part["stream-closed"] == nil && part["stream-up-to-date"] == nil)
        #expect(part["cache-control"] == "private, max-age=60")
        let rest = try page(stream, "offset=" + (try #require(part["stream-next-offset"])))
        #expect(rest.body.count == 10 && rest["stream-closed"] == "true" && rest["stream-status"] == "cancelled")
    }

    @Test func piecesAreCutWhereContentMayBe() throws {
        let text = String(repeating: "ß", count: StreamPage.bytes / 2 + 3)
        let stream = try stream("text/plain", [0x78], Array(text.utf8))
        var read: [UInt8] = []
        var offset = "0000000000000007_0000000000000000"
        for _ in 0..<3 {
            let part = try page(stream, "offset=" + offset)
            #expect(String(validating: part.body, as: UTF8.self) != nil)
            read += part.body
            offset = try #require(part["stream-next-offset"])
        }
        #expect(read == Array(("x" + text).utf8))
        let large = [0x22] + [UInt8](repeating: 0x61, count: StreamPage.bytes * 2) + [0x22, 0x0A]
        let messages = try self.stream("application/json", large, Array("1\n".utf8))
        let one = try page(messages, first)
        #expect(one.body.count >= StreamPage.bytes * 2, "a message comes whole")
    }

    private func stream(_ type: String, _ parts: [UInt8]...) throws -> StreamBuffer {
        let buffer = StreamBuffer(
            id: StreamID(7), name: try #require(StreamName("a")), configuration: StreamConfiguration(contentType: type))
        for part in parts { _ = buffer.append(part) }
        return buffer
    }

    @Test func tagsTellPagesApart() throws {
        let stream = try stream("text/plain", [0x61])
        let tag = try #require(try page(stream, first)["etag"])
        #expect(try page(stream, first, "if-none-match: " + tag).status == 304)
        #expect(try page(stream, first, "if-none-match: \"x\", W/" + tag).status == 304)
        #expect(try page(stream, first, "if-none-match: \"x\"").status == 200)
        _ = stream.setStatus(.ended(StreamEnding(.complete, at: 0)))
        let closed = try page(stream, first, "if-none-match: " + tag)
        #expect(closed.status == 200 && closed["etag"] != tag)
        #expect(try page(stream, "offset=now")["etag"] == nil)
    }

    @Test func aLongPollWaitsAtTheEndOfAnOpenStream() throws {
        let stream = try stream("text/plain", [0x61])
        let asked = try reading("offset=now&live=long-poll")
        guard case .waits(let offset) = StreamPage(of: stream, asked, cursor: { "5" }) else {
            Issue.record("did not wait")
            return
        }
        #expect(offset == 1)
        let late = StreamPage.timedOut(stream.snapshot, at: offset, cursor: "9")
        #expect(late.status == 204 && late["stream-cursor"] == "9" && late["stream-up-to-date"] == "true")
        _ = stream.append([0x62])
        guard case .answered(let news) = StreamPage(of: stream, asked, from: offset, cursor: { "5" }) else {
            Issue.record("still waits")
            return
        }
        #expect(news.text == "b" && news["stream-cursor"] == "5" && news.status == 200)
        _ = stream.setStatus(.ended(StreamEnding(.complete, at: 0)))
        guard case .answered(let end) = StreamPage(of: stream, asked, from: 2, cursor: { "5" }) else {
            Issue.record("waits for an ended stream")
            return
        }
        #expect(end.status == 204 && end["stream-closed"] == "true" && end["stream-cursor"] == nil)
    }

    @Test func cursorsNeverGoBackwards() {
        let now: Int64 = 1_728_432_000_000 + 20_000 * 1000
        #expect(CacheCursor.nextCursor(at: now, after: nil, random: 0) == "1000")
        #expect(CacheCursor.nextCursor(at: now, after: "3", random: 0) == "1000")
        #expect(CacheCursor.nextCursor(at: now, after: "junk", random: 0) == "1000")
        for random: UInt64 in [0, 1, 19, 3599, .max] {
            let next = Int(CacheCursor.nextCursor(at: now, after: "1000", random: random)) ?? 0
            #expect(next > 1000 && next <= 1180)
        }
        #expect(CacheCursor.nextCursor(at: now, after: "\(Int64.max)", random: 0) == "1000")
    }

    @Test func eventsCarryLines() {
        func text(_ bytes: String, _ content: StreamContent, _ status: StreamStatus? = .open) -> String {
            String(
                decoding: StreamEvents.makeBlock(Array(bytes.utf8), content, upTo: "x_3", status, cursor: "8"),
                as: UTF8.self)
        }
        let control =
            "event: control\ndata: {\"streamNextOffset\":\"x_3\",\"streamCursor\":\"8\",\"upToDate\":true}\n\n"
        #expect(text("a\nb", .text) == "event: data\ndata: a\ndata: b\n\n" + control)
        #expect(text("a\r\n\rb\n", .text) == "event: data\ndata: a\ndata: \ndata: b\ndata: \n\n" + control)
        let forged = text("x\n\nevent: control\ndata: {}\n\n", .text)
        #expect(forged.split(separator: "\n").count { $0 == "event: control" } == 1)
        #expect(text("{}\n1\n", .json) == "event: data\ndata: [\ndata: {},\ndata: 1\ndata: ]\n\n" + control)
        #expect(text("abc", .binary) == "event: data\ndata: YWJj\n\n" + control)
        #expect(text("", .text) == control)
        #expect(!text("a", .text, nil).contains("upToDate"))
        let end = text("", .text, .ended(StreamEnding(.aborted, at: 0)))
        #expect(end.contains("\"streamClosed\":true,\"status\":\"aborted\"") && !end.contains("streamCursor"))
    }
}

/// How what became of a request is answered.
@Suite struct StreamResponseTests {
    private func snapshot(_ status: StreamStatus = .open) throws -> StreamSnapshot {
        StreamSnapshot(
            id: StreamID(1), name: try #require(StreamName("a")),
            configuration: StreamConfiguration(contentType: "text/plain"),
            end: 3, status: status)
    }

    @Test func statuses() throws {
        let put = try call("PUT /streams/a")
        let post = try call("POST /streams/a", "stream-closed: true")
        let made = StreamResponse.makeResponse(.created(try snapshot()), to: put, url: "http://hub/streams/a")
        #expect(made.status == 201 && made["location"] == "http://hub/streams/a" && made.contentType == "text/plain")
        #expect(StreamResponse.makeResponse(.existed(try snapshot()), to: put, url: "").status == 200)
        let stamp = ProducerStamp(id: "p", epoch: 1, sequence: 4)
        #expect(
            StreamResponse.makeResponse(.appended(try snapshot(), isRepeated: false, stamp: nil), to: post, url: "")
                .status
                == 204)
        let new = StreamResponse.makeResponse(
            .appended(try snapshot(), isRepeated: false, stamp: stamp), to: post, url: "")
        #expect(new.status == 200 && new["producer-epoch"] == "1" && new["producer-seq"] == "4")
        #expect(
            StreamResponse.makeResponse(.appended(try snapshot(), isRepeated: true, stamp: stamp), to: post, url: "")
                .status
                == 204)
        let ended = try snapshot(.ended(StreamEnding(.cancelled, at: 0)))
        let refused = StreamResponse.refusalResponse(.ended(ended))
        #expect(refused.status == 409 && refused["stream-closed"] == "true" && refused["stream-cancelled"] == "true")
        #expect(refused["stream-next-offset"] == "0000000000000001_0000000000000003")
        #expect(StreamResponse.refusalResponse(.staleEpoch(current: 5))["producer-epoch"] == "5")
        let gap = StreamResponse.refusalResponse(.sequenceGap(expected: 2, received: 9))
        #expect(gap.status == 409 && gap["producer-expected-seq"] == "2" && gap["producer-received-seq"] == "9")
    }

    @Test func descriptions() throws {
        var configuration = StreamConfiguration(contentType: "text/plain")
        configuration.lifetime = .until(1_769_860_800_500)
        let stream = StreamSnapshot(
            id: StreamID(1), name: try #require(StreamName("a")), configuration: configuration, end: 3, status: .open)
        let found = StreamResponse.describeStream(stream)
        #expect(found["stream-expires-at"] == "2026-01-31T12:00:00.500Z" && found["cache-control"] == "no-store")
        #expect(found["stream-closed"] == nil && found["stream-next-offset"] == "0000000000000001_0000000000000003")
    }
}
