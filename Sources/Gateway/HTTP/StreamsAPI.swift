import DurableStreams
import HTTP
import Hub
import Streams
import Wire

/// Streams over HTTP (Durable Streams): rights, requests to the service, and readers that wait for more. Each loop has
/// one.
final class StreamsAPI {
    /// Lives as long as the process.
    unowned(unsafe) let loop: EventLoop
    let service: (any StreamService)?
    private(set) var rights = StreamRights()
    /// By exchange: requests that wait for the policies' answer.
    private var undecided: [Int: Pending] = [:]
    /// The size of their bodies. Anyone with a token can send some, with or without rights.
    private var undecidedBytes = 0
    private var undecidedBytesOf: [StreamOwner: Int] = [:]
    private static let mostUndecided = 16_777_216
    /// For one user, not counting a first request.
    private static let mostUndecidedOfUser = mostUndecided / 4
    /// By exchange: readers of streams that several hubs share, until this hub is known to be up to date.
    private(set) var refreshing: [Int: Sender] = [:]
    /// By exchange: long polls that wait at the end of a stream.
    private(set) var polls: [Int: LongPoll] = [:]
    private(set) var polled: [StreamID: Set<Int>] = [:]
    private(set) lazy var readers = StreamReaders(loop: loop)
    private(set) lazy var uploads = StreamUploads(loop: loop)
    private(set) lazy var forwards = StreamForwards(loop: loop)
    /// By exchange: readers of events, until their answers begin.
    var beginning: [Int: StreamReaders.Reader] = [:]
    private var random = SystemRandomNumberGenerator()

    /// Seconds that a long poll waits (Durable Streams, section 5.7): less than proxies wait for a response.
    private static let patience: Int32 = 30
    /// Seconds after which an answer of events ends, and its reader reconnects (section 5.8).
    private static let patienceOfEvents: Int32 = 60

    /// A request, with the claims of its token.
    struct Sender {
        let call: StreamCall
        let claims: Claims
        /// The stream's URL from the client's point of view.
        let url: String
        let isByCookie: Bool
        /// The hub itself granted the right, so the policies are not asked.
        var hasTicket = false
    }

    enum Judgement {
        case refused(HTTPResponse)
        case admitted(Sender)
    }

    private struct Pending {
        let sender: Sender
        let body: [UInt8]
    }

    struct LongPoll {
        let reading: StreamReading
        let stream: StreamBuffer
        let offset: Int
        /// From the reader's token, for the operator.
        let user: Name?
        let hold: HeldRequests.Hold
        /// In seconds of the loop.
        let until: Int32
    }

    func longPolls(of stream: StreamID) -> [LongPoll] { (polled[stream] ?? []).compactMap { polls[$0] } }

    init(loop: EventLoop) {
        self.loop = loop
        service = loop.services.streams
    }

    // MARK: By the head

    /// Nil if the path is not one of this API's.
    func judge(_ head: HTTPHead, at now: HubTime) -> Judgement? {
        let call: StreamCall
        do throws(StreamComplaint) {
            guard let asked = try StreamCall(head, routes: loop.rules.streamRoutes) else { return nil }
            call = asked
        } catch {
            return .refused(error.response)
        }
        guard service != nil else {
            return .refused(.error(404, "This hub serves no streams: its operator has to set streams.directory"))
        }
        if let text = head.field("stream-ticket") { return admit(text, call, head, at: now) }
        do throws(Refusal) {
            // A browser's event source sends no headers, but may have a ticket or a cookie.
            guard let bearer = try loop.router.events.bearer(of: head, mayHaveTicket: call.isRead, at: now) else {
                return .refused(.error(401, "A token is missing: send it as Authorization: Bearer TOKEN"))
            }
            return .admitted(
                Sender(
                    call: call, claims: bearer.claims, url: url(of: call, head), isByCookie: bearer.isByCookie))
        } catch {
            return .refused(.error(401, error.message))
        }
    }

    /// Admits a backend that writes the turn of a request forwarded to it.
    private func admit(_ text: String, _ call: StreamCall, _ head: HTTPHead, at now: HubTime) -> Judgement {
        guard let ticket = loop.services.forwarder?.verifyTicket(text), ticket.expiresAt > now.unix / 1000,
            ticket.name == call.name, let call = call.meant(for: ticket.generation)
        else {
            return .refused(
                .error(401, "This Stream-Ticket is for other appends, or too old: use the one of your request"))
        }
        let claims = Claims(
            role: ticket.bearer.role, subject: nil, expiresAt: ticket.expiresAt, json: ticket.bearer.claims)
        return .admitted(
            Sender(call: call, claims: claims, url: url(of: call, head), isByCookie: false, hasTicket: true))
    }

    private func url(of call: StreamCall, _ head: HTTPHead) -> String {
        let isEncrypted = loop.tunnels != nil || head.field("x-forwarded-proto") == "https"
        return call.url(scheme: isEncrypted ? "https" : "http", host: head.field("host"))
    }

    // MARK: With its body

    func perform(_ sender: Sender, _ body: [UInt8], exchange: Int) -> HTTPOutcome {
        guard !sender.hasTicket else { return carryOut(sender, body, exchange: exchange) }
        switch rights.know(sender.claims, sender.call.name, sender.call.right, at: loop.second) {
        case true?: return carryOut(sender, body, exchange: exchange)
        case false?:
            loop.counters.streamsForbidden += 1
            return .answered(Self.forbidden)
        case nil: break
        }
        let owner = StreamOwner(sender.claims)
        let his = owner.flatMap { undecidedBytesOf[$0] } ?? 0
        guard undecided.isEmpty || undecidedBytes + body.count <= Self.mostUndecided,
            his == 0 || his + body.count <= Self.mostUndecidedOfUser
        else {
            var response = HTTPResponse.error(503, "Too many requests wait for the policies; try again in a moment")
            response.headers = [("retry-after", "1")]
            return .answered(response.readableAnywhere)
        }
        undecidedBytes += body.count
        if let owner, !body.isEmpty { undecidedBytesOf[owner] = his + body.count }
        undecided[exchange] = Pending(sender: sender, body: body)
        let question = AuthorizationQuestion(
            claims: sender.claims, topic: sender.call.name.topic, right: sender.call.right.asked)
        loop.ask(question) { .streamRight(exchange, $0) }
        return .later
    }

    /// Applies the policies' decision. An append is carried out even if its client is gone by now.
    func decide(_ exchange: Int, _ outcome: AuthorizationOutcome) {
        guard let pending = takeUndecided(exchange) else {
            if !forwards.decide(exchange, outcome, &rights) { uploads.decide(exchange, outcome, &rights) }
            return
        }
        guard let extensions = outcome.extensions else {
            return answer(exchange, .refusal(503, .databaseUnavailable))
        }
        let isAllowed = !extensions.isEmpty
        rights.note(
            isAllowed, pending.sender.claims, pending.sender.call.name, pending.sender.call.right, at: loop.second)
        guard isAllowed else {
            loop.counters.streamsForbidden += 1
            return answer(exchange, Self.forbidden)
        }
        loop.router.replied(exchange, carryOut(pending.sender, pending.body, exchange: exchange))
    }

    private func takeUndecided(_ exchange: Int) -> Pending? {
        guard let pending = undecided.removeValue(forKey: exchange) else { return nil }
        undecidedBytes -= pending.body.count
        if let owner = StreamOwner(pending.sender.claims), let his = undecidedBytesOf[owner] {
            undecidedBytesOf[owner] = his > pending.body.count ? his - pending.body.count : nil
        }
        return pending
    }

    private func answer(_ exchange: Int, _ response: HTTPResponse) {
        loop.router.replied(exchange, .answered(response.readableAnywhere))
    }

    /// The same answer for streams that exist and those that do not, so that it reveals neither.
    static let forbidden = HTTPResponse.error(
        403, "Your token gives no right to this: the policies on realtime.messages decide for the topic stream:NAME"
    ).readableAnywhere

    private func carryOut(_ sender: Sender, _ body: [UInt8], exchange: Int) -> HTTPOutcome {
        guard let service else { return .later }
        let call = sender.call
        switch call.action {
        case .create(var configuration, let closes, let isNext):
            configuration.owner = StreamOwner(sender.claims)
            ask(.create(configuration, body: body, closes: closes, isNext: isNext), sender, exchange)
        case .append(var append, _):
            append.body = body
            append.bearer = StreamBearer(sender.claims)
            ask(.append(append), sender, exchange)
        case .cancel(let generation):
            ask(.cancel(generation, by: StreamBearer(sender.claims)), sender, exchange)
        case .delete(let generation): ask(.delete(generation), sender, exchange)
        case .describe, .read:
            guard service.isShared else { return show(sender, exchange: exchange) }
            // Reads must include everything that other hubs have acknowledged, however recently.
            refreshing[exchange] = sender
            service.submitRequest(.touch, on: call.name) { [inbox = loop.inbox] in inbox.post(.appended(exchange, $0)) }
        }
        return .later
    }

    func refreshed(_ exchange: Int, _ answer: StreamAnswer) {
        guard let sender = refreshing.removeValue(forKey: exchange) else { return }
        if case .refused(.unavailable) = answer {
            return self.answer(exchange, StreamResponse.refusalResponse(.unavailable))
        }
        loop.router.replied(exchange, show(sender, exchange: exchange))
    }

    private func show(_ sender: Sender, exchange: Int) -> HTTPOutcome {
        if case .read(let reading) = sender.call.action { return read(reading, sender, exchange: exchange) }
        let stream = service?.buffer(of: sender.call.name)
        let response =
            stream.map { StreamResponse.describeStream($0.snapshot) } ?? StreamResponse.refusalResponse(.notFound)
        return .answered(response.readableAnywhere)
    }

    private func ask(_ request: StreamRequest, _ sender: Sender, _ exchange: Int) {
        service?.submitRequest(request, on: sender.call.name) { [inbox = loop.inbox] answer in
            let response = StreamResponse.makeResponse(answer, to: sender.call, url: sender.url)
            inbox.post(.respond(exchange, response.readableAnywhere))
        }
    }

    // MARK: Reading

    private func read(_ reading: StreamReading, _ sender: Sender, exchange: Int) -> HTTPOutcome {
        let name = sender.call.name
        if case .messages(let member) = reading.mode {
            return messages(reading, namedBy: member, sender, exchange: exchange)
        }
        guard let service, let stream = service.buffer(of: name) else {
            return .answered(StreamResponse.refusalResponse(.notFound).readableAnywhere)
        }
        if case .idle = stream.configuration.lifetime { service.submitRequest(.touch, on: name) { _ in } }
        guard reading.mode != .events else { return events(reading, stream, sender, exchange: exchange) }
        switch page(of: stream, reading, from: nil) {
        case .answered(let response): return .answered(response.readableAnywhere)
        case .waits(let offset):
            return wait(reading, stream, at: offset, by: sender.claims, exchange: exchange)
        }
    }

    private func events(
        _ reading: StreamReading, _ stream: StreamBuffer, _ sender: Sender, exchange: Int
    ) -> HTTPOutcome {
        let offset = reading.position.offset(in: stream.snapshot)
        let head: HTTPResponse
        do throws(StreamEvents.Refused) {
            head = try StreamEvents.head(of: stream, from: offset)
        } catch {
            return .answered(error.response.readableAnywhere)
        }
        var reader = StreamReaders.Reader(
            stream.name, stream, offset: offset ?? 0,
            asked: CacheCursor.validCursor(reading.cursor, at: loop.now().unix),
            until: loop.second + Self.patienceOfEvents)
        reader.user = sender.claims.subject
        beginning[exchange] = reader
        return .streams(
            StreamingAnswer(head: head.readableAnywhere, claims: sender.claims, exchange: exchange, source: self))
    }

    /// Begins plain events from the reader's offset in this stream; another stream of the same name is read from its
    /// start.
    private func messages(
        _ reading: StreamReading, namedBy member: String?, _ sender: Sender, exchange: Int
    ) -> HTTPOutcome {
        var stream = service?.buffer(of: sender.call.name)
        let turns = reading.turns
        if turns.areApart, let last = reading.last, last.stream != stream?.id {
            // The reader's turn is over, and the current one answers another request.
            return .answered(HTTPResponse(status: 204).readableAnywhere)
        }
        var known = turns.known
        if turns.areApart, reading.last == nil, known == nil, let snapshot = stream?.snapshot,
            snapshot.status.ending != nil
        {
            known = snapshot.id
        }
        if known != nil, stream?.id == known { stream = nil }
        if let stream, case .idle = stream.configuration.lifetime {
            service?.submitRequest(.touch, on: sender.call.name) { _ in }
        }
        let isSame = stream != nil && reading.last?.stream == stream?.id
        let offset = isSame ? reading.last?.end ?? 0 : 0
        // Tells a browser that reconnects with everything read that there is no more (WHATWG HTML, 9.2.3).
        if let snapshot = stream?.snapshot, isSame, snapshot.status.ending != nil, offset >= snapshot.end {
            return .answered(HTTPResponse(status: 204).readableAnywhere)
        }
        var reader = StreamReaders.Reader(sender.call.name, stream, offset: offset, asked: nil, until: .max)
        reader.known = known
        reader.messages = .init(namedBy: member)
        reader.user = sender.claims.subject
        beginning[exchange] = reader
        var head = StreamEvents.headOfMessages.readableAnywhere
        if sender.isByCookie { head.headers.append(("access-control-allow-credentials", "true")) }
        return .streams(StreamingAnswer(head: head, claims: sender.claims, exchange: exchange, source: self))
    }

    private func page(of stream: StreamBuffer, _ reading: StreamReading, from offset: Int?) -> StreamPage {
        guard !stream.isGone else { return .answered(StreamResponse.refusalResponse(.notFound)) }
        return StreamPage(of: stream, reading, from: offset) { cursor(after: reading) }
    }

    private func cursor(after reading: StreamReading) -> String {
        CacheCursor.nextCursor(at: loop.now().unix, after: reading.cursor, random: random.next())
    }

    private func wait(
        _ reading: StreamReading, _ stream: StreamBuffer, at offset: Int, by claims: Claims, exchange: Int
    ) -> HTTPOutcome {
        service?.watchStream(stream.name, by: loop.index)
        // Data may have arrived before the watch began.
        if case .answered(let response) = page(of: stream, reading, from: offset) {
            service?.unwatchStream(stream.name, by: loop.index)
            return .answered(response.readableAnywhere)
        }
        guard let hold = loop.limits.requests.enter(claims) else {
            service?.unwatchStream(stream.name, by: loop.index)
            loop.counters.overShare += 1
            return .answered(HeldRequests.refusal.readableAnywhere)
        }
        polls[exchange] = LongPoll(
            reading: reading, stream: stream, offset: offset, user: claims.subject, hold: hold,
            until: loop.second + Self.patience)
        polled[stream.id, default: []].insert(exchange)
        return .later
    }

    func changed(_ stream: StreamBuffer) {
        readers.changed(stream)
        uploads.changed(stream)
        for exchange in polled[stream.id] ?? [] {
            guard let poll = polls[exchange],
                case .answered(let response) = page(of: stream, poll.reading, from: poll.offset)
            else { continue }
            abandoned(exchange)
            answer(exchange, response)
        }
    }

    /// Called once a second.
    func tick() {
        rights.forget(at: loop.second)
        readers.tick()
        endPolls(until: loop.second)
    }

    /// Prepares for the hub's end: waiting clients are answered, and ask the next process.
    func drain() { endPolls(until: .max) }

    private func endPolls(until second: Int32) {
        for (exchange, poll) in polls where poll.until <= second {
            abandoned(exchange)
            answer(
                exchange,
                StreamPage.timedOut(poll.stream.snapshot, at: poll.offset, cursor: cursor(after: poll.reading)))
        }
    }

    /// Abandons an exchange whose client is gone.
    func abandoned(_ exchange: Int) {
        refreshing[exchange] = nil
        // A read is dropped; an append is still carried out.
        if undecided[exchange]?.sender.call.isRead == true { _ = takeUndecided(exchange) }
        uploads.abandoned(exchange)
        guard let poll = polls.removeValue(forKey: exchange) else { return }
        loop.limits.requests.leave(poll.hold)
        let id = poll.stream.id
        polled[id]?.remove(exchange)
        if polled[id]?.isEmpty == true { polled[id] = nil }
        service?.unwatchStream(poll.stream.name, by: loop.index)
    }
}

extension StreamOwner {
    /// Nil for a backend.
    init?(_ claims: Claims) {
        guard claims.role != "service_role" else { return nil }
        self = claims.subject.map { .user($0) } ?? .role(claims.role)
    }
}
