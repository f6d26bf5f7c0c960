import DurableStreams
import HTTP
import Streams
import Testing

/// What a request's head asks for.
@Suite struct StreamCallTests {
    @Test func pathsNameStreams() throws {
        #expect(try call("HEAD /streams/a").name.text == "a")
        #expect(try call("HEAD /realtime/v1/streams/reply/42").name.text == "reply/42")
        #expect(try call("HEAD /streams/Gr%C3%BC%C3%9Fe%20x").name.text == "Grüße x")
        #expect(try StreamCall(head("GET /api/broadcast")) == nil)
        #expect(try StreamCall(head("GET /streams")) == nil)
        guard case .cancel = try call("POST /streams/a/b/cancel").action else {
            Issue.record("not a cancel")
            return
        }
    }

    @Test(arguments: [
        "GET /streams/", "GET /streams/a/", "GET /streams/a%2F..%2Fb", "GET /streams/cancel", "GET /streams/a%0Ab",
    ])
    func whatIsNoName(_ line: String) throws {
        #expect(throws: StreamComplaint.self) { try call(line) }
    }

    @Test func creates() throws {
        guard case .create(let plain, let closes, false) = try call("PUT /streams/a").action else {
            Issue.record("no create")
            return
        }
        #expect(plain == StreamConfiguration(contentType: "application/octet-stream") && !closes)
        guard
            case .create(let full, true, true) = try call(
                "PUT /streams/a", "content-type: Text/Plain", "Stream-TTL: 60", "stream-closed: TRUE",
                "stream-lease: 0",
                "stream-generation: NEXT"
            ).action
        else {
            Issue.record("no create that closes")
            return
        }
        #expect(full.contentType == "text/plain" && full.lifetime == .idle(seconds: 60) && full.lease == 0)
        guard
            case .create(let until, false, false) = try call(
                "PUT /streams/a", "stream-expires-at: 2026-01-31T13:00:00.5+01:00", "stream-closed: yes"
            ).action
        else {
            Issue.record("no create with an end")
            return
        }
        #expect(until.lifetime == .until(1_769_860_800_500))
    }

    @Test(arguments: [
        "stream-ttl: 060", "stream-ttl: +60", "stream-ttl: 6.0", "stream-ttl: 6e1", "stream-ttl: -1", "stream-ttl: x",
        "stream-expires-at: tomorrow", "stream-expires-at: 2026-02-30T00:00:00Z", "stream-lease: 1.5",
        "stream-ttl: 60\r\nstream-expires-at: 2026-01-31T12:00:00Z", "stream-forked-from: /streams/b",
        "stream-generation: 7",
    ])
    func refusesToCreate(_ field: String) throws {
        #expect(throws: StreamComplaint.self) { try call("PUT /streams/a", field) }
    }

    @Test func appends() throws {
        guard
            case .append(let append, hasBody: true) = try call(
                "POST /streams/a", "content-type: text/plain", "content-length: 3", "producer-id: p",
                "producer-epoch: 2",
                "producer-seq: 0", "stream-seq: 09"
            ).action
        else {
            Issue.record("no append")
            return
        }
        #expect(append.producer == ProducerStamp(id: "p", epoch: 2, sequence: 0))
        #expect(append.sequence == "09" && append.contentType == "text/plain" && !append.closes)
        guard
            case .append(let close, hasBody: false) = try call(
                "POST /streams/a", "content-type: image/png", "stream-closed: true"
            ).action
        else {
            Issue.record("no close")
            return
        }
        #expect(close.closes && close.contentType == nil, "the type of no body is nobody's concern")
    }

    @Test(arguments: [
        "content-length: 0", "content-length: 3", "content-length: 3\r\ncontent-type: a/b\r\nproducer-id: p",
        "content-length: 3\r\ncontent-type: a/b\r\nproducer-id: p\r\nproducer-epoch: 1.0\r\nproducer-seq: 0",
        "content-length: 3\r\ncontent-type: a/b\r\nproducer-id: \r\nproducer-epoch: 1\r\nproducer-seq: 0",
        "content-length: 3\r\ncontent-type: a/b\r\nproducer-id: p\r\nproducer-epoch: 9007199254740992\r\nproducer-seq: 0",
    ])
    func refusesToAppend(_ fields: String) throws {
        #expect(throws: StreamComplaint.self) { try call("POST /streams/a", fields) }
    }

    @Test func reads() throws {
        guard case .read(let page) = try call("GET /streams/a?x=1").action,
            case .read(let live) = try call(
                "GET /streams/a?offset=0000000000000007_0000000000000012&live=long-poll&cursor=7",
                "if-none-match: \"t\""
            ).action
        else {
            Issue.record("no read")
            return
        }
        #expect(page.position == .start && page.mode == .page && page.cursor == nil)
        #expect(
            live.position == .at(12, of: StreamID(7)) && live.mode == .longPoll && live.cursor == "7"
                && live.known == "\"t\"")
    }

    @Test(arguments: [
        "offset=", "offset=a,b", "offset=%20", "offset=12", "offset=_0000000000000001", "offset=0000000000000001_1",
        "offset=-000000000000001_0000000000000001",
        "live=sse",
        "live=long-poll", "live=ws&offset=-1", "offset=00000000000000001", "offset=-2",
    ])
    func refusesToRead(_ query: String) throws {
        #expect(throws: StreamComplaint.self) { try call("GET /streams/a?" + query) }
    }

    @Test(arguments: ["PATCH /streams/a", "GET /streams/a/cancel"]) func otherMethods(_ line: String) throws {
        let complaint = #expect(throws: StreamComplaint.self) { try call(line) }
        #expect(complaint?.response.status == 405 && complaint?.response["allow"] != nil)
    }
}

@Suite struct TimestampTests {
    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0), ("2026-11-24T08:00:00Z", 1_795_507_200_000),
        ("2026-11-24T09:30:00.25+01:30", 1_795_507_200_250),
        ("2026-11-24t07:59:60z", 1_795_507_200_000), ("2026-11-24T00:00:00-08:00", 1_795_507_200_000),
    ]) func reads(_ text: String, _ milliseconds: Int64) { #expect(Timestamp(text)?.milliseconds == milliseconds) }

    @Test(arguments: [
        "", "2026-11-24", "2026-11-24T08:00:00", "2026-11-24T24:00:00Z", "2026-13-01T00:00:00Z",
        "2026-11-24T08:00:00.Z",
        "2026-11-24T08:00:00Zx", "2026-11-24T08:00:00+1:00", "26-11-24T08:00:00Z",
    ]) func refuses(_ text: String) { #expect(Timestamp(text) == nil) }

    @Test func writesWhatItReads() {
        for time: Int64 in [0, 1_795_507_200_000, 1_795_507_200_007, 951_782_400_120] {
            #expect(Timestamp(Timestamp(milliseconds: time).text)?.milliseconds == time)
        }
    }
}
