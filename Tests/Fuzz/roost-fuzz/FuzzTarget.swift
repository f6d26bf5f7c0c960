import Capture
import ChangeFeed
import DurableStreams
import HTTP
import Hub
import Matching
import StreamFiles
import Streams
import Wire

@testable import Identity
@testable import Redis

/// A reader of bytes that come from outside. It may say of them what it likes; it must not end the process.
enum FuzzTarget: String, CaseIterable {
    case json, frame, http, token, streamfile, log, redis, wal, filter, cursor, durable, policy, events
    case broadcast, push, backend, fields, stream, rows

    func read(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        switch self {
        case .json: readJSON(bytes)
        case .frame: readFrame(bytes)
        case .http: readHTTP(bytes)
        case .token: readToken(text)
        case .streamfile: readStream(bytes)
        case .log: FuzzedLog().read(bytes)
        case .redis: readReplies(bytes)
        case .wal: readWAL(bytes)
        case .filter:
            guard let filter = attempt({ try ChangeFilter(parsing: text) }) else { return }
            // What was read is written so that it reads the same.
            guard attempt({ try ChangeFilter(parsing: filter.description) }) == filter else {
                fatalError("another filter")
            }
            _ = attempt { try RegularExpression(text) }
        case .cursor: readCursors(text)
        case .durable: readDurable(bytes)
        case .policy: _ = NodeTree(text)
        case .events:
            _ = attempt { try EventRequest(body: bytes, lastID: text) }
            _ = attempt { try EventRequest(channels: text.split(separator: "\n").map(String.init), lastID: nil) }
        case .broadcast: FuzzedRequest(bytes)?.broadcast()
        case .push: FuzzedRequest(bytes)?.push()
        case .backend: FuzzedRequest(bytes)?.backend()
        case .fields: FuzzedRequest(bytes)?.fields()
        case .stream: FuzzedRequest(bytes)?.stream()
        case .rows: FuzzedRows(bytes)?.read()
        }
    }

    private func attempt<Value>(_ body: () throws -> Value) -> Value? {
        do { return try body() } catch { return nil }
    }

    private func readJSON(_ bytes: [UInt8]) {
        // What another hub sends is taken for JSON without a look.
        let trusted = JSON(trusted: bytes[...])
        walk(trusted, 0)
        _ = (trusted.isEqual(to: JSON(trusted: bytes.dropLast())), Excerpt.of(trusted))
        guard let json = attempt({ try JSON(parsing: bytes) }) else { return }
        walk(json, 0)
        _ = attempt { try JWKSet(parsing: bytes) }
        _ = JoinConfig(json, topic: "realtime:a", limits: HubLimits())
    }

    private func walk(_ json: JSON, _ depth: Int) {
        guard depth <= JSONScanner.depthLimit else { return }
        _ = (json.int, json.double, json.string, json.bool, json.description)
        for element in json.elements { walk(element, depth + 1) }
        _ = json["a"]
    }

    private func readFrame(_ bytes: [UInt8]) {
        for version in [ProtocolVersion.v1, .v2] {
            for frame in [
                attempt { try ClientFrame(text: bytes[...], version: version) },
                attempt { try ClientFrame(binary: bytes[...], version: version) },
            ] {
                guard let frame else { continue }
                if case .json(let payload) = frame.body {
                    walk(payload, 0)
                    _ = JoinConfig(payload, topic: frame.topic, limits: HubLimits())
                }
            }
        }
    }

    /// As it may come: in pieces, whose lengths the first bytes say.
    private func readHTTP(_ bytes: [UInt8]) {
        var connection = HTTPConnection(limits: .init(), at: 0)
        var rest = bytes.dropFirst(2)
        var sizes = bytes.prefix(2).map { max(1, Int($0)) } + [Int.max]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(sizes.removeFirst()))
            if sizes.isEmpty { sizes = [.max] }
            rest = rest.dropFirst(piece.count)
            piece.withUnsafeBytes { input in
                var input = input
                for _ in 0..<1000 {
                    switch connection.advance(&input, at: 0) {
                    case .judge: connection.admit(input, at: 0)
                    case .perform: connection.answer(HTTPResponse(status: 200), at: 0)
                    default: return
                    }
                }
            }
        }
    }

    private static let verifier = JWTVerifier(secret: "secret-secret-secret-secret-secret")

    private func readToken(_ text: String) {
        _ = attempt { try Self.verifier.verify(text, at: HubTime(monotonic: 0, unix: 1_700_000_000_000)) }
        // Behind a good signature, too.
        let claims = text.split(separator: ".").dropFirst().first.map(String.init) ?? text
        guard let payload = attempt({ try JSON(parsing: Array(claims.utf8)) }) else { return }
        walk(payload, 0)
        let now = HubTime(monotonic: 0, unix: 1_700_000_000_000)
        for rules in [ClaimRules(), ClaimRules(issuers: ["i"], audiences: ["a"])] {
            guard let claims = attempt({ try rules.claims(payload) }) else { continue }
            _ = (claims.expired(at: now), attempt { try rules.checkBeginning(payload, at: now) })
        }
    }

    private func readStream(_ bytes: [UInt8]) {
        func use(_ records: [StreamRecord]) {
            guard let first = records.first, var log = StreamLog(first) else { return }
            var lease = StreamLease(log.configuration, at: 0)
            for record in records.dropFirst() { log.apply(record) }
            var append = StreamAppend(body: [1])
            for producer in log.newestProducers(limit: 5) {
                append.producer = ProducerStamp(
                    id: Name(producer.id), epoch: producer.epoch, sequence: producer.sequence)
                _ = log.decide(append, limit: 1 << 20, at: 1 << 41)
            }
            _ = lease.advance(to: 1 << 40, StreamLease.Rules(), hasProducer: log.hasProducer)
        }
        use(RecordFrame.records(in: bytes).records)
        // The fuzzer makes no checksums: what a record says is read behind a good one, too.
        var framed: [UInt8] = []
        for body in bytes.split(separator: 0xFF, maxSplits: 50) where !body.isEmpty {
            framed += RecordFrame.framed(body)
        }
        use(RecordFrame.records(in: framed).records)
    }

    private func readReplies(_ bytes: [UInt8]) {
        let reader = ReplyReader()
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(1000))
            rest = rest.dropFirst(piece.count)
            guard attempt({ try piece.withUnsafeBytes { try reader.feed($0) } }) != nil else { return }
            while let value = attempt({ try reader.next() }) ?? nil {
                _ = attempt { try LogScripts.opening(value) }
                _ = attempt { try LogScripts.published(value) }
                _ = attempt { try LogScripts.head(value) }
                _ = attempt { try LogScripts.piece(value) }
                _ = StreamScripts.opening(value)
                _ = StreamScripts.head(value)
                _ = StreamScripts.outcomes(value)
                _ = StreamScripts.index(value)
                if case .bytes(let said) = value { _ = SharedStreamNews(said) }
            }
        }
    }

    private func readWAL(_ bytes: [UInt8]) {
        var decoder = CaptureDecoder(after: CapturePosition(lsn: LSN(0)))
        let batch = CaptureBatch()
        for message in bytes.split(separator: 0xFF, maxSplits: 50) {
            Array(message).withUnsafeBytes { bytes in
                if let message = attempt({ try PgoutputMessage(bytes) }) {
                    _ = attempt { try decoder.take(message, into: batch) }
                }
                if case .data(let body, _)? = attempt({ try StreamMessage(bytes) }) {
                    _ = attempt { try PgoutputMessage(body) }
                }
            }
        }
    }

    private func readCursors(_ text: String) {
        if let cursor = FeedCursor(text) {
            guard FeedCursor(cursor.text) == cursor else { fatalError("another cursor") }
        }
        _ = (EventCursor(text), StreamPosition(text), Snapshot(text), LSN(text), LogEntryID(text))
        _ = Snapshot(prunedUpTo: text, sparing: text)
        _ = StreamName(text)
        if let json = attempt({ try JSON(parsing: Array(text.utf8)) }) {
            _ = JoinConfig(json, topic: "a", limits: HubLimits())
        }
        if let time = Timestamp(text) { _ = time.text }
        _ = CacheCursor.next(at: 1_700_000_000_000, after: text, random: 7)
    }

    private func readDurable(_ bytes: [UInt8]) {
        var parser = HTTPHeadParser()
        guard case .complete(let head, _) = bytes.withUnsafeBytes({ parser.parse($0) }),
            let call = attempt({ try StreamCall(head) }) ?? nil
        else { return }
        guard case .read(let reading) = call.action, let name = StreamName("a") else { return }
        for type in ["text/plain", "application/json", "application/octet-stream"] {
            let stream = StreamBuffer(
                id: StreamID(1), name: name, configuration: StreamConfiguration(contentType: type))
            _ = stream.append(Array(type == "application/json" ? "{}\n[1]\n".utf8 : "äöü".utf8))
            _ = StreamPage(of: stream, reading) { "1" }
        }
    }
}
