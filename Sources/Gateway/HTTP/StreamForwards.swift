import DurableStreams
import HTTP
import Hub
import Streams
import Wire

/// Requests on one loop that the hub forwards to the application's backend (`streams.routes` with `forward`). Each
/// opens the next turn of its stream, and is answered with the events of that turn as they arrive.
final class StreamForwards {
    struct Sender {
        let route: StreamRoute
        let query: [String: String]
        let claims: Claims
        let isByCookie: Bool
        /// The client's headers for the backend.
        let headers: [String]
    }

    private struct Pending {
        let sender: Sender
        let name: StreamName
        let body: [UInt8]
        let owner: StreamOwner?
    }

    /// Lives as long as the process.
    private unowned(unsafe) let loop: EventLoop
    /// By exchange.
    private var pending: [Int: Pending] = [:]

    init(loop: EventLoop) {
        self.loop = loop
    }

    // MARK: By the head

    enum Judgement {
        case refused(HTTPResponse)
        case admitted(Sender)
    }

    /// Nil if the path is not one of these, or the request is answered as on any other route.
    func judge(_ head: HTTPHead, at now: HubTime) -> Judgement? {
        guard head.method == "POST",
            let route = loop.rules.streamRoutes.first(where: { $0.path == head.path && $0.backend != nil })
        else { return nil }
        guard loop.services.forwarder != nil else {
            return .refused(.error(404, "This hub serves no streams: its operator has to set streams.directory"))
        }
        do throws(Refusal) {
            guard let bearer = try loop.router.events.bearer(of: head, mayHaveTicket: true, at: now) else {
                return .refused(.error(401, "A token is missing: send it as Authorization: Bearer TOKEN"))
            }
            return .admitted(
                Sender(
                    route: route, query: head.allQuery, claims: bearer.claims, isByCookie: bearer.isByCookie,
                    headers: Self.headers(of: head)))
        } catch {
            return .refused(.error(401, error.message))
        }
    }

    private static let passedOn = [
        "content-type", "authorization", "accept-language", "idempotency-key", "traceparent", "x-request-id",
    ]

    /// No value can smuggle in another header, because the parser refuses control characters in values.
    private static func headers(of head: HTTPHead) -> [String] {
        passedOn.compactMap { name in head.field(name).map { "\(name): \($0)" } }
    }

    // MARK: With its body

    func perform(_ sender: Sender, _ body: [UInt8], exchange: Int, _ rights: StreamRights) -> HTTPOutcome {
        let name: StreamName
        do throws(StreamComplaint) {
            name = try sender.route.streamName(sender.query, body)
        } catch {
            return .answered(error.response.readableAnywhere)
        }
        let owner = StreamOwner(sender.claims)
        guard loop.services.forwarder?.reserveRoom(for: owner) == true else {
            loop.counters.overShare += 1
            var response = HTTPResponse.error(429, "Too many replies are under way; try again when one has ended")
            response.headers = [("retry-after", "1")]
            return .answered(response.readableAnywhere)
        }
        pending[exchange] = Pending(sender: sender, name: name, body: body, owner: owner)
        switch rights.know(sender.claims, name, .read, at: loop.second) {
        case true?: open(exchange)
        case false?:
            loop.counters.streamsForbidden += 1
            giveBack(exchange)
            return .answered(StreamsAPI.forbidden)
        case nil:
            loop.ask(AuthorizationQuestion(claims: sender.claims, topic: name.topic, right: .read(replay: nil))) {
                .streamRight(exchange, $0)
            }
        }
        return .later
    }

    /// - Returns: false if the exchange is not one of these.
    func decide(_ exchange: Int, _ outcome: AuthorizationOutcome, _ rights: inout StreamRights) -> Bool {
        guard let asked = pending[exchange] else { return false }
        guard let extensions = outcome.extensions else {
            refuse(exchange, .refusal(503, .databaseUnavailable))
            return true
        }
        rights.note(!extensions.isEmpty, asked.sender.claims, asked.name, .read, at: loop.second)
        if extensions.isEmpty {
            loop.counters.streamsForbidden += 1
            refuse(exchange, StreamsAPI.forbidden)
        } else {
            open(exchange)
        }
        return true
    }

    private func giveBack(_ exchange: Int) {
        guard let asked = pending.removeValue(forKey: exchange) else { return }
        loop.services.forwarder?.returnRoom(for: asked.owner)
    }

    /// Posted, because the caller may be in the middle of reading rights.
    private func refuse(_ exchange: Int, _ response: HTTPResponse) {
        giveBack(exchange)
        loop.inbox.post(.respond(exchange, response.readableAnywhere))
    }

    private func open(_ exchange: Int) {
        guard let asked = pending[exchange] else { return }
        var configuration = StreamConfiguration(contentType: "application/json")
        configuration.owner = asked.owner
        loop.services.streams?.submitRequest(
            .create(configuration, body: [], closes: false, isNext: true), on: asked.name
        ) { [inbox = loop.inbox] in inbox.post(.appended(exchange, $0)) }
    }

    /// Handles the stream's answer to the request for a turn. The request is forwarded whether or not its client is
    /// still there.
    ///
    /// - Returns: nil if the exchange is not one of these, or the turn was refused.
    func opened(_ exchange: Int, _ answer: StreamAnswer) -> StreamReaders.Reader? {
        guard let asked = pending[exchange] else { return nil }
        guard case .created(let made) = answer, let stream = loop.services.streams?.buffer(of: made.name),
            stream.id == made.id
        else {
            refuse(exchange, refusal(answer))
            return nil
        }
        pending[exchange] = nil
        loop.services.forwarder?.forwardRequest(
            StreamForward(
                name: made.name, generation: made.id, url: asked.sender.route.backend ?? "",
                headers: asked.sender.headers, body: asked.body,
                bearer: StreamBearer(asked.sender.claims),
                owner: asked.owner, eventMember: asked.sender.route.eventMember))
        var reader = StreamReaders.Reader(made.name, stream, offset: 0, asked: nil, until: .max)
        reader.messages = .init(namedBy: asked.sender.route.eventMember)
        reader.user = asked.sender.claims.subject
        reader.cancels = asked.sender.route.cancels
        reader.bearer = StreamBearer(asked.sender.claims)
        return reader
    }

    private func refusal(_ answer: StreamAnswer) -> HTTPResponse {
        switch answer {
        case .refused(let refusal): return StreamResponse.refusalResponse(refusal)
        case .existed(let snapshot):
            var response = HTTPResponse.error(
                409, "A reply is under way here: read it with GET, or send this again when it has ended")
            response.headers = [("stream-generation", snapshot.id.text), ("retry-after", "1")]
            return response
        case .created, .appended, .done: return StreamResponse.refusalResponse(.unavailable)
        }
    }

    /// Nil if the exchange is not one of these.
    func sender(of exchange: Int) -> Sender? { pending[exchange]?.sender }
}
