import Cluster
import Hub
import StreamFiles
import Streams

@testable import Clustering

/// What a fuzzer begins with: one of each, so that it need not find the forms.
extension FuzzTarget {
    var seeds: [[UInt8]] {
        switch self {
        case .json:
            texts(
                #"{"a":[1,-2.5e3,"\u00e4\n",true,null,{}],"keys":[{"kty":"oct","k":"AAAA","kid":"x"}]}"#,
                "9223372036854775807", "{\"", "[}", #"{"a":[}"#, #"{"a""#, #"{"a":1,"a":2}"#)
        case .frame:
            texts(
                #"["1","2","realtime:a","phx_join",{"config":{"broadcast":{"self":true,"history":{"limit":5,"after":"a.1"}},"presence":{"key":"k"},"postgres_changes":[{"event":"*","schema":"public","table":"t","filter":"id=eq.1"}],"stream":{"id":"1","at":5,"every_ms":40}}}]"#,
                #"{"topic":"realtime:a","event":"broadcast","payload":{"type":"broadcast","event":"e","payload":{}},"ref":"1","join_ref":"1"}"#
            ) + [[3, 1, 1, 1, 1, 0, 1] + "12tepayload".utf8]
        case .http:
            texts(
                "..GET /socket/websocket?vsn=2.0.0&apikey=a%20b HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n\r\n",
                "..POST /api/broadcast HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: 1\r\n\r\nGET / HTTP/1.1\r\nHost: y\r\n\r\n",
                "..POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc")
        case .token:
            texts(
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJyb2xlIjoiYXV0aGVudGljYXRlZCIsInN1YiI6ImEiLCJleHAiOjE4MDAwMDAwMDB9.AAAA",
                #"x.{"role":"anon","exp":1e300,"nbf":1.5}"#)
        case .streamfile: [streamFile] + [streamBodies]
        case .log: log
        case .redis:
            texts(
                "*3\r\n$4\r\n1000\r\n$2\r\n-1\r\n$1\r\n0\r\n", ":5\r\n", "-EPOCH none\r\n",
                "$21\r\n1000 5 abc 7 999-3 1-0\r\n",
                "*2\r\n:1\r\n*1\r\n*2\r\n$6\r\n1000-1\r\n*6\r\n$1\r\np\r\n$1\r\n0\r\n$1\r\nt\r\n$1\r\n7\r\n$1\r\nb\r\n$1\r\nx\r\n",
                "*2\r\n$1\r\na\r\n$4\r\na1 5\r\n", "$-1\r\n*-1\r\n",
                "$29\r\n5 1 a\n\u{9}\0\0\0\u{1}\0\0\0w a1 -1 ax\r\n")
        case .wal:
            [
                [0x42] + zeros(20) + [0xFF, 0x52] + [0, 0, 0, 1] + Array("s\0t\0d".utf8) + [0, 1, 1]
                    + Array("id\0".utf8) + zeros(3)
                    + [23] + zeros(4) + [0xFF, 0x49] + [0, 0, 0, 1, 0x4E, 0, 1, 0x74, 0, 0, 0, 1, 0x37] + [0xFF, 0x43]
                    + zeros(25),
                [0x6B] + zeros(16) + [1], [0x77] + zeros(24) + [0x54, 0, 0, 0, 1, 0, 0, 0, 0, 1],
            ]
        case .filter:
            texts(
                #"id=eq.5,name=not.in.("a,b",c),x=is.null"#, "a=match.^(a|b)+[0-9]{2,5}$", "t=gt.2026-01-31T10:00:00+02"
            )
        case .cursor:
            texts(
                "1~z!rAQAAAAAKAAAA.0!ha.1!s1f-5", "AQAAAAAKAAAA.1", "0000000000000005", "10:20:12,15", "16/B374D848",
                "1000-5",
                "2026-01-31T12:00:00.5+01:00", #"{"config":{"stream":{"id":"1","at":9223372036854775807}}}"#)
        case .durable:
            texts(
                "GET /streams/a?offset=0000000000000001_0000000000000002&live=long-poll&cursor=5 HTTP/1.1\r\nHost: x\r\n\r\n",
                "PUT /streams/a HTTP/1.1\r\nHost: x\r\nStream-TTL: 60\r\nStream-Lease: 5\r\nContent-Type: text/plain\r\n\r\n",
                "POST /streams/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nProducer-Id: p\r\nProducer-Epoch: 0\r\nProducer-Seq: 9007199254740991\r\nContent-Type: text/plain\r\n\r\n",
                "GET /streams/a?offset=now&live=sse HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 1-5\r\n\r\n")
        case .policy:
            texts(
                "{OPEXPR :opno 98 :args ({VAR :varno 1 :varattno 2} {CONST :constvalue 4 [ 1 0 0 0 ]}) :location -1 :x <>}"
            )
        case .broadcast, .push, .backend, .fields, .stream: requests.map { Array($0.utf8) }
        case .rows: rows
        case .events:
            texts(
                #"{"channels":[{"topic":"a","private":true,"config":{"broadcast":true}}],"last_event_id":"1"}"#, "a\nb")
        }
    }

    private func texts(_ texts: String...) -> [[UInt8]] { texts.map { Array($0.utf8) } }
    private func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    private var records: [StreamRecord] {
        guard let name = StreamName("a") else { return [] }
        var configuration = StreamConfiguration(contentType: "text/plain")
        configuration.lifetime = .idle(seconds: 60)
        configuration.lease = 5
        let stamp = ProducerStamp(id: "p", epoch: 1, sequence: 2)
        return [
            .created(StreamID(1), name, configuration, at: 5), .appended([0x61], nil, producer: stamp, sequence: "s"),
            .closing([0x62], StreamEnding(.complete, at: 6), producer: stamp, sequence: nil), .closed(row: nil),
            .ended(StreamEnding(.aborted, at: 7)),
        ]
    }

    private var streamFile: [UInt8] { records.reduce(into: []) { RecordFrame.append($1, to: &$0) } }

    /// Without heads, as `FuzzTarget.read` makes them.
    private var streamBodies: [UInt8] {
        Array(
            records.map { record -> [UInt8] in
                var frame: [UInt8] = []
                RecordFrame.append(record, to: &frame)
                return Array(frame.dropFirst(8))
            }.joined(separator: [0xFF] as [UInt8]))
    }

    private var log: [[UInt8]] {
        guard let hub = FuzzedLog.hub else { return [] }
        let key = ChannelKey(topic: "realtime:a", isPrivate: false)
        let name = PeerMessage.MemberName(boot: 9, loop: 1, serial: 1)
        let member = PeerMessage.PresentMember(
            member: name, ref: "r", previousRef: nil, key: "k", hasMadeKey: true, user: "u", payload: [0x7B, 0x7D],
            appState: nil)
        let text = PeerMessage.BroadcastBody.text(Array("{}".utf8))
        let messages: [PeerMessage] = [
            .keep(key, HistoryWish(limit: 5, lifetime: 60_000)), .ordered(key, text, sender: name, databaseID: "1"),
            .presence(key, joins: [member], leaves: []), .lost(key, name, milliseconds: 5),
            .expected(key, name, milliseconds: 9),
            .claimed(key, name, of: .init(hub: 9, turn: 0)), .over(key, name, of: .init(hub: 9, turn: 1)),
            .broadcast(key, text),
            .typing(key, .started(.member(name), text)), .appState(key, name, .inactive),
            .users([.init(user: "u", count: 2)]),
            .presence(key, joins: [], leaves: [.init(member: name, ref: "r")]),
        ]
        func part(_ kind: UInt8, _ bytes: [UInt8]) -> [UInt8] {
            [kind, UInt8(truncatingIfNeeded: bytes.count >> 8), UInt8(truncatingIfNeeded: bytes.count)] + bytes
        }
        let start = LogPlace(epoch: FuzzedLog.epoch, offset: -1)
        let batch = LogBatch(hub: hub, since: start, first: 1, messages: messages.map { $0.encoded[...] })
        let entry = LogEntry(
            place: LogPlace(epoch: FuzzedLog.epoch, offset: 0), previous: 0, tag: 5, batch: batch.encoded()[...])
        let beat = HubBeat(
            hub: hub, number: 1, since: start, place: entry.place, settled: 12, digestSequence: 12, figures: [1, 2, 3],
            ended: [HubBeat.Ended(hub: hub, since: start, silence: 5)], software: "1")
        let direct = DirectMessage(sender: hub, receiver: 7, afterSequence: 3, payload: [1, 2])
        let whole =
            part(0, PublishedMessage.encode(entry)) + part(0, PublishedMessage.encode(beat))
            + part(0, PublishedMessage.encode(direct)) + part(1, Array("1001 -1 abc 0 1000-5".utf8))
            + part(2, Array("1001 3 abc 7 1000-5".utf8))
        let answer = PresenceAnswer.pieces(
            of: 9, PresencePieces(bits: 0), covered: [0],
            .init(
                members: [PresentMembers.Copy(record: member, channel: key, hub: 9, turn: 1, lostUntil: 1 << 42)],
                wishes: [key: HistoryWish(limit: 1, lifetime: 1)]))
        let own = messages.flatMap { part(3, $0.encoded) } + messages.flatMap { part(0x83, $0.encoded) }
        return [whole, own, part(4, answer.encoded(at: 1 << 41)) + part(4, PresenceQuestion.digests.encoded)]
    }
}
