import HTTP
import Hub
import Wire

/// An admitted HTTP request, until it is answered.
struct HTTPCall {
    let isHead: Bool
    /// Whether it must have a body.
    let needsBody: Bool
    /// Whether its body is passed on as it arrives.
    let inPieces: Bool
    /// The origin of the requesting page; nil if the client is not a page.
    let origin: String?
    let goal: Goal
    /// `x-forwarded-for`, if the request needs its sender's address.
    let forwarded: String?
    /// True for a browser's event source, which gives up for good after any status other than 200 but reconnects when a
    /// connection breaks (WHATWG HTML, 9.2.3). So it is told of a temporary error by breaking the connection.
    let isEventSource: Bool
    /// For the log, if it is refused.
    let trace: TraceContext?
    var body: [UInt8] = []

    enum Goal {
        /// Messages of a sender whose token is valid.
        case broadcast(BroadcastAPI.Sender)
        case stream(StreamsAPI.Sender)
        case forward(StreamForwards.Sender)
        case events(EventsAPI.Sender)
        case handler(HTTPRequest, isOps: Bool)
    }
}

/// The outcome of a request.
enum HTTPOutcome {
    case answered(HTTPResponse)
    /// The answer has a streaming body.
    case streams(StreamingAnswer)
    /// `RequestRouter.replied` brings the answer.
    case later
}

/// Routes and answers the requests of a loop.
final class RequestRouter {
    /// Lives as long as the process. Reference counting would cost about 0.2 µs of a short request.
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
    /// Not served anywhere, but standard methods (RFC 9110, section 9.3, and the later QUERY), for which 501 would be
    /// wrong.
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

    /// Returns a new number for a request, by which a late answer finds its connection. Never zero.
    func nextExchange() -> Int {
        exchanges += 1
        return exchanges
    }

    // MARK: By the head

    /// The response to a request that is invalid on every route; nil if there is nothing wrong with it.
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
        /// Answered by the head alone.
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

    /// Answers an admitted request.
    ///
    /// - Parameter fd: the socket that the request came by.
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

    /// Delivers a late answer, whose connection may be gone by now.
    func replied(_ exchange: Int, _ outcome: HTTPOutcome) {
        if case .later = outcome { return }
        guard !loop.http.reply(exchange, outcome), case .streams(let answer) = outcome else { return }
        answer.source.refused(answer.exchange)
    }

    /// Begins a request whose body is passed on as it arrives. `HTTPServer.goOn` must be called before the first piece.
    func begin(_ call: HTTPCall, exchange: Int) {
        if case .stream(let sender) = call.goal { streams.begin(sender, exchange: exchange) }
    }

    func take(_ piece: [UInt8], exchange: Int) { streams.take(piece, exchange: exchange) }

    /// Passes on the last piece; `replied` brings the answer.
    func end(_ piece: [UInt8], exchange: Int) { streams.end(piece, exchange: exchange) }

    /// Abandons an exchange whose client is gone.
    func abandoned(_ exchange: Int) { streams.abandoned(exchange) }

    /// Adapts a response for the requesting page; see `AllowedOrigins`. The operator's port serves only its own pages.
    ///
    /// - Parameter origin: of the page; nil if the client is not a page, or if the origin is unknown.
    func readable(_ response: HTTPResponse, by origin: String?, isOps: Bool) -> HTTPResponse {
        isOps ? response : loop.rules.origins.readable(response, by: origin)
    }

    // MARK: Messages over HTTP and their rights

    /// Publishes at once if no right is needed; otherwise asks for the rights, and the exchange is answered later.
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

    /// Applies the policies' decision on one topic. The messages are published even if the connection is gone by now.
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
