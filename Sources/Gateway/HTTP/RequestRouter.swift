import HTTP
import Hub
import Wire

/// An HTTP request that was let in, on its way to being answered.
struct HTTPCall {
    let isHead: Bool
    /// Whether it cannot do without a body.
    let needsBody: Bool
    /// Whether its body is taken as it comes.
    let inPieces: Bool
    /// Of the page that asks; nil for what is no page.
    let origin: String?
    let goal: Goal
    /// `x-forwarded-for`, where whoever asks is to be counted.
    let forwarded: String?
    /// A browser's event source asks, which gives up for good at any answer but 200 and comes back to a connection that breaks
    /// (WHATWG HTML, 9.2.3): what is over in a while is said to it by breaking that.
    let isEventSource: Bool
    /// For the log, where it is refused.
    let trace: TraceContext?
    var body: [UInt8] = []

    enum Goal {
        /// Messages of who is allowed to send some.
        case broadcast(BroadcastAPI.Sender)
        case stream(StreamsAPI.Sender)
        case forward(StreamForwards.Sender)
        case events(EventsAPI.Sender)
        case handler(HTTPRequest, isOps: Bool)
    }
}

/// What becomes of a request.
enum HTTPOutcome {
    case answered(HTTPResponse)
    /// The answer has a body that goes on.
    case streams(StreamingAnswer)
    /// `RequestRouter.replied` brings it.
    case later
}

/// What requests of a loop are answered.
final class RequestRouter {
    /// Lives as long as the process. Counting who holds it costs some 0.2 µs of a short request.
    private unowned(unsafe) let loop: EventLoop
    private let handler: (any HTTPHandler)?
    private let opsHandler: (any HTTPHandler)?
    private var broadcastAPI: BroadcastAPI
    let streams: StreamsAPI
    let events: EventsAPI
    /// By exchange: messages that wait for the policies' answer.
    private var publications: [Int: Publication] = [:]
    private var exchanges = 0

    private static let nothingHere = HTTPResponse.error(404, "Nothing is served here")
    /// Served nowhere, but methods of HTTP's own (RFC 9110, section 9.3, and QUERY, which came later), so that 501 would be the wrong word.
    private static let knownMethods: Set<String> = ["TRACE", "CONNECT", "QUERY"]

    init(loop: EventLoop) {
        self.loop = loop
        handler = loop.services.handler
        opsHandler = loop.services.opsHandler
        broadcastAPI = BroadcastAPI(
            verifier: loop.services.verifier, limits: loop.rules.limits, servesStreams: loop.services.streams != nil)
        streams = StreamsAPI(loop: loop)
        events = EventsAPI(loop: loop)
    }

    func adopt(_ rules: GatewayRules) { broadcastAPI.limits = rules.limits }

    /// A number for a request, by which a late answer finds its connection. Never zero.
    func nextExchange() -> Int {
        exchanges += 1
        return exchanges
    }

    // MARK: By the head

    /// What a request cannot be, whatever is served where. Nil where nothing is wrong with it.
    func refusal(of head: HTTPHead, isOps: Bool) -> HTTPResponse? {
        guard isOps || head.method == "OPTIONS" || loop.rules.origins.admit(head) else { return AllowedOrigins.refusal }
        guard HTTPRequest.Method(rawValue: head.method) != nil, !head.method.isEmpty else {
            guard Self.knownMethods.contains(head.method) else {
                return .error(501, "This method is not known here")
            }
            var response = HTTPResponse.error(405, "This method is not served here")
            response.headers = [("allow", "GET, HEAD, POST, PUT, DELETE, OPTIONS")]
            return response
        }
        guard !isOps, Admission.paths.contains(head.path), head.method != "OPTIONS" else { return nil }
        return loop.admission.tokenRefusal(of: head, at: loop.now())
            ?? WebSocketHandshake.sentence(to: head, at: head.path)
    }

    enum Judgement {
        /// By its head alone.
        case answered(HTTPResponse)
        case admitted(HTTPCall)
    }

    func judge(_ head: HTTPHead, isOps: Bool) -> Judgement {
        if !isOps {
            if head.method == "OPTIONS" { return .answered(loop.rules.origins.preflight(for: head)) }
            switch events.judge(head, at: loop.now()) {
            case .admitted(let sender): return .admitted(call(head, .events(sender)))
            case .refused(let response): return .answered(response.readableAnywhere)
            case nil: break
            }
            switch broadcastAPI.judge(head, at: loop.now()) {
            case .admitted(let sender): return .admitted(call(head, .broadcast(sender)))
            case .refused(let response): return .answered(response.readableAnywhere)
            case nil: break
            }
            switch streams.forwards.judge(head, at: loop.now()) {
            case .admitted(let sender): return .admitted(call(head, .forward(sender)))
            case .refused(let response): return .answered(response.readableAnywhere)
            case nil: break
            }
            switch streams.judge(head, at: loop.now()) {
            case .admitted(let sender): return .admitted(call(head, .stream(sender)))
            case .refused(let response): return .answered(response.readableAnywhere)
            case nil: break
            }
        }
        let request = HTTPRequest(head)
        switch (isOps ? opsHandler : handler)?.judge(request) {
        case .admitted: return .admitted(call(head, .handler(request, isOps: isOps)))
        case .admittedEvenIfEmpty:
            return .admitted(call(head, .handler(request, isOps: isOps), mayBeEmpty: true))
        case .answered(let response): return .answered(response)
        case .notServed, nil: return .answered(Self.nothingHere)
        }
    }

    private func call(_ head: HTTPHead, _ goal: HTTPCall.Goal, mayBeEmpty: Bool = false) -> HTTPCall {
        var (needsBody, inPieces) = (head.method == "POST" && !mayBeEmpty, false)
        var forwarded: String?
        var isEventSource = false
        if case .stream(let sender) = goal {
            needsBody = false
            inPieces = sender.call.isOpenEnded && head.field("transfer-encoding") != nil
            forwarded = head.field("x-forwarded-for")
            isEventSource = sender.call.isRead && head.asksForEvents
        }
        if case .forward = goal { forwarded = head.field("x-forwarded-for") }
        if case .events(let sender) = goal {
            needsBody = sender.hasBody && sender.route == .channels
            forwarded = head.field("x-forwarded-for")
            isEventSource = head.asksForEvents
        }
        return HTTPCall(
            isHead: head.method == "HEAD", needsBody: needsBody, inPieces: inPieces,
            origin: head.field("origin"), goal: goal, forwarded: forwarded, isEventSource: isEventSource,
            trace: TraceContext(head))
    }

    // MARK: With its body

    /// Answers a request that was let in.
    ///
    /// - Parameter fd: the socket that it came by.
    func perform(_ call: HTTPCall, exchange: Int, by fd: Int32) -> HTTPOutcome {
        switch call.goal {
        case .broadcast(let sender):
            switch broadcastAPI.handle(call.body, of: sender) {
            case .refused(let response): return .answered(response.readableAnywhere)
            case .tooLarge(let response):
                loop.hub.countRefusal(.over(.payloadBytes, loop.rules.limits.payloadBytes))
                return .answered(response.readableAnywhere)
            case .accepted(let publication): return publish(publication, exchange: exchange)
            }
        case .stream(let sender): return streams.perform(sender, call.body, exchange: exchange)
        case .forward(let sender): return streams.forward(sender, call.body, exchange: exchange)
        case .events(let sender):
            return events.perform(sender, call.body, exchange: exchange, by: fd, call.forwarded)
        case .handler(var request, let isOps):
            request.body = call.body
            let reply = HTTPReply { [inbox = loop.inbox] in inbox.post(.respond(exchange, $0)) }
            switch (isOps ? opsHandler : handler)?.respond(to: request, later: reply) {
            case .now(let response): return .answered(response)
            case .later: return .later
            case nil: return .answered(Self.nothingHere)
            }
        }
    }

    /// A late answer. Its connection may be gone by now.
    func replied(_ exchange: Int, _ outcome: HTTPOutcome) {
        if case .later = outcome { return }
        guard !loop.http.reply(exchange, outcome), case .streams(let answer) = outcome else { return }
        answer.source.refused(answer.exchange)
    }

    /// The head of a request whose body is taken as it comes. `HTTPServer.goOn` is called when the first piece may.
    func begin(_ call: HTTPCall, exchange: Int) {
        if case .stream(let sender) = call.goal { streams.begin(sender, exchange: exchange) }
    }

    func take(_ piece: [UInt8], exchange: Int) { streams.take(piece, exchange: exchange) }

    /// The rest of it: `replied` brings the answer.
    func end(_ piece: [UInt8], exchange: Int) { streams.end(piece, exchange: exchange) }

    /// Whoever waits for this answer is gone.
    func abandoned(_ exchange: Int) { streams.abandoned(exchange) }

    /// An answer as the page gets it that asks; see `AllowedOrigins`. On the operator's port no page is served but its own.
    ///
    /// - Parameter origin: of the page; nil for what is no page, and where nobody knows.
    func readable(_ response: HTTPResponse, by origin: String?, isOps: Bool) -> HTTPResponse {
        isOps ? response : loop.rules.origins.readable(response, by: origin)
    }

    // MARK: Messages by HTTP, and the rights they take

    /// Publishes at once what needs no right; else asks, and the exchange is answered later.
    private func publish(_ publication: Publication, exchange: Int) -> HTTPOutcome {
        guard !publication.undecided.isEmpty else { return .answered(carryOut(publication)) }
        publications[exchange] = publication
        for topic in publication.undecided {
            loop.ask(AuthorizationQuestion(claims: publication.claims, topic: topic.text, right: publication.right)) {
                .publicationRight(exchange, topic: topic, $0)
            }
        }
        return .later
    }

    /// The policies' word on one topic. The connection may be gone by now; what it sent is published all the same.
    func decide(_ exchange: Int, topic: Name, _ outcome: AuthorizationOutcome) {
        publications[exchange]?.decide(topic, outcome)
        guard let publication = publications[exchange], publication.undecided.isEmpty else { return }
        publications[exchange] = nil
        let response = carryOut(publication)
        guard publication.isAllowed, let row = publication.row else { return replied(exchange, .answered(response)) }
        loop.store(row) { [inbox = loop.inbox] _ in inbox.post(.respond(exchange, response)) }
    }

    private func carryOut(_ publication: Publication) -> HTTPResponse {
        if publication.isAllowed {
            loop.hub.advanceTime(to: loop.now())
            for message in publication.messages {
                loop.hub.publishMessage(
                    message.broadcast, of: message.event, to: message.key, by: publication.claims.subject)
            }
            loop.execute()
        }
        return publication.response.readableAnywhere
    }
}
