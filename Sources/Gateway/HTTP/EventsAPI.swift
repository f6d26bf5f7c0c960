import HTTP
import Hub
import Wire

/// Subscriptions of clients without a WebSocket: they read events from a streaming HTTP answer, as server-sent events
/// or as lines of JSON. Each loop has one.
final class EventsAPI {
    /// Lives as long as the process.
    private unowned(unsafe) let loop: EventLoop
    /// By exchange: requests whose answers have no slot yet.
    private var beginning: [Int: Beginning] = [:]
    private var formats: [Slot: EventFormat] = [:]

    /// A request, with the claims of its token.
    struct Sender {
        let route: EventRoute
        let claims: Claims
        let isPage: Bool
        let isByCookie: Bool
        let isLines: Bool
        let channels: [String]
        let isPrivate: Bool
        /// From the header, or else from the query.
        let lastID: String?
        let hasBody: Bool
    }

    enum Judgement {
        case refused(HTTPResponse)
        case admitted(Sender)
    }

    private struct Beginning {
        let request: EventRequest
        let claims: Claims
        let isPage: Bool
        let isLines: Bool
    }

    init(loop: EventLoop) {
        self.loop = loop
    }

    /// The number of answers in progress.
    var count: Int { formats.count }

    // MARK: By the head

    /// Nil if the path is not one of this API's.
    func judge(_ head: HTTPHead, at now: HubTime) -> Judgement? {
        guard let route = EventRoute(path: head.path, method: head.method) else { return nil }
        guard route.methods.contains(head.method) else {
            let methods = route.methods.joined(separator: ", ")
            var response = HTTPResponse.error(405, "Use \(methods)")
            response.headers = [("allow", methods + ", OPTIONS")]
            return .refused(response)
        }
        let query = head.allQuery
        let bearer: EventBearer
        do throws(Refusal) {
            // Otherwise a ticket found in a log could be exchanged for the next one, again and again.
            let mayHaveTicket = route != .ticket
            guard let found = try self.bearer(of: head, mayHaveTicket: mayHaveTicket, at: now) else {
                return .refused(.error(401, Self.problem(of: route, hasTicket: query["ticket"] != nil)))
            }
            bearer = found
        } catch {
            return .refused(.error(401, error.message))
        }
        guard let isPrivate = Self.boolean(query["private"]) else {
            return .refused(.error(400, "private must be true or false"))
        }
        return .admitted(
            Sender(
                route: route, claims: bearer.claims, isPage: head.field("origin") != nil,
                isByCookie: bearer.isByCookie,
                isLines: head.lists("application/x-ndjson", in: "accept"), channels: head.queryValues("channel"),
                isPrivate: isPrivate, lastID: head.field("last-event-id") ?? query["last_event_id"],
                hasBody: head.method == "POST"))
    }

    private static func problem(of route: EventRoute, hasTicket: Bool) -> String {
        switch (route, hasTicket) {
        case (.ticket, _): "A ticket takes a token: send it as Authorization: Bearer TOKEN"
        case (_, true):
            "The ticket is unknown, used already, or older than \(EventTickets.seconds) seconds: ask for another"
        case (_, false): "A token is missing: send it as Authorization: Bearer TOKEN, or ask for a ticket"
        }
    }

    /// Authenticates a request for a streaming answer: by a ticket, which is used up, by a token, or by the
    /// application's cookie. Nil if there is none of them.
    ///
    /// - Parameter mayHaveTicket: whether a ticket or a cookie is accepted, as for requests that only read.
    func bearer(
        of head: HTTPHead, mayHaveTicket: Bool, at now: HubTime
    ) throws(Refusal) -> EventBearer? {
        let query = head.allQuery
        if mayHaveTicket, let ticket = query["ticket"] {
            guard let claims = loop.limits.tickets.take(ticket, at: now) else { return nil }
            if let expired = claims.expiryRefusal(at: now) { throw expired }
            return EventBearer(claims: claims, isByCookie: false)
        }
        if let token = head.callToken(query: query) {
            return EventBearer(claims: try loop.services.verifier.verifyToken(token, at: now), isByCookie: false)
        }
        guard mayHaveTicket, let token = cookie(of: head) else { return nil }
        return EventBearer(claims: try loop.services.verifier.verifyToken(token, at: now), isByCookie: true)
    }

    /// The token in the application's own cookie (`http.token_cookie`). A browser sends cookies by itself, so it counts
    /// only for pages that may use it, identified by headers that the browser sets and pages cannot (Fetch,
    /// "Sec-Fetch-Site" and "Origin").
    private func cookie(of head: HTTPHead) -> String? {
        guard let name = loop.rules.tokenCookie else { return nil }
        let isListed = head.field("origin").map { !loop.rules.origins.isEmpty && loop.rules.origins.allow($0) } ?? false
        return AllowedOrigins.isOwn(head) || isListed ? head.cookie(name) : nil
    }

    private static func boolean(_ text: String?) -> Bool? {
        switch text {
        case nil, "false", "0": false
        case "true", "1": true
        default: nil
        }
    }

    // MARK: With its body

    /// - Parameters:
    ///   - fd: the socket that the request came by.
    ///   - forwarded: its `x-forwarded-for`.
    func perform(
        _ sender: Sender, _ body: [UInt8], exchange: Int, by fd: Int32, _ forwarded: String?
    ) -> HTTPOutcome {
        var claims = sender.claims
        let request: EventRequest
        do {
            switch sender.route {
            case .ticket:
                let address = loop.admission.address(by: fd, forwarded)
                return .answered(ticket(for: claims, from: address).readableAnywhere)
            case .broadcasts(let topic, let event):
                request = EventRequest(topic: topic, isPrivate: sender.isPrivate, event: event, lastID: sender.lastID)
            case .channels where sender.hasBody:
                request = try EventRequest(body: body, lastID: sender.lastID)
                if let token = EventRequest.token(ofBody: body) {
                    claims = try loop.services.verifier.verifyToken(token, at: loop.now())
                }
            case .channels: request = try EventRequest(channels: sender.channels, lastID: sender.lastID)
            }
        } catch let refusal as Refusal {
            return .answered(HTTPResponse.error(401, refusal.message).readableAnywhere)
        } catch let mistake as EventRequest.Mistake {
            return .answered(HTTPResponse.error(400, mistake.sentence).readableAnywhere)
        } catch {
            return .answered(HTTPResponse.error(400, "The request cannot be read").readableAnywhere)
        }
        beginning[exchange] = Beginning(
            request: request, claims: claims, isPage: sender.isPage, isLines: sender.isLines)
        var head = HTTPResponse(
            status: 200,
            headers: [
                ("content-type", sender.isLines ? "application/x-ndjson" : "text/event-stream"),
                ("cache-control", "no-store"),
                // Otherwise nginx would buffer events and send them together.
                ("x-accel-buffering", "no"),
                // The content comes from clients.
                ("x-content-type-options", "nosniff"),
            ])
        // Required for a page of another origin to read what its user's cookie opened (Fetch, "CORS protocol").
        if sender.isByCookie { head.headers.append(("access-control-allow-credentials", "true")) }
        return .streams(
            StreamingAnswer(
                head: head.readableAnywhere, claims: claims, exchange: exchange, source: self, isHeld: true))
    }

    /// Informs the operator: behind a proxy that is not listed, all clients share one address.
    private func tellOfSharedAddress() {
        loop.denials.tell(
            "Tickets are refused", reason: "tickets_per_address",
            why: "\(TicketShares.mostOfAddress) of one address are unused; if it is a proxy's, list it in "
                + "http.trusted_proxies",
            of: nil, at: loop.second, loop.logger)
    }

    private func ticket(for claims: Claims, from address: PeerAddress?) -> HTTPResponse {
        let ticket: String
        switch loop.limits.tickets.issue(for: claims, from: address, at: loop.now()) {
        case .issued(let issued): ticket = issued
        case .overShare(let bound):
            loop.counters.overShare += 1
            if bound == .address { tellOfSharedAddress() }
            var response = HTTPResponse.error(429, "Too many of your tickets are unused; use them, or try again later")
            response.headers = [("retry-after", String(EventTickets.seconds))]
            return response
        case .full:
            var response = HTTPResponse.error(503, "Too many tickets are unused; try again in a moment")
            response.headers = [("retry-after", "1")]
            return response
        }
        var response = HTTPResponse.json(
            200,
            JSONWriter.object {
                $0.writeMember("ticket", ticket)
                $0.writeMember("expires_in", EventTickets.seconds)
            })
        response.headers.append(("cache-control", "no-store"))
        return response
    }
}

/// The claims of a request for events, and how they were presented.
struct EventBearer {
    let claims: Claims
    let isByCookie: Bool
}

extension EventsAPI: StreamingSource {
    func began(_ exchange: Int, _ slot: Slot, isChunked: Bool) {
        guard let new = beginning.removeValue(forKey: exchange) else { return }
        let format = EventFormat(isLines: new.isLines, isChunked: isChunked)
        formats[slot] = format
        loop.hub.advanceTime(to: loop.now())
        loop.hub.connectReader(new.request, as: format, on: slot, claims: new.claims, isPage: new.isPage)
        loop.execute()
    }

    func refused(_ exchange: Int) { beginning[exchange] = nil }

    func ended(_ slot: Slot) {
        formats[slot] = nil
        loop.recoveries.forget(slot)
        loop.hub.disconnect(slot, at: loop.now())
        loop.execute()
    }

    func hasRoom(_ slot: Slot) {
        loop.recoveries.resume(slot)
        loop.hub.roomBecameFree(slot)
        loop.execute()
    }

    func heartbeat(_ slot: Slot, isChunked: Bool) {
        if let format = formats[slot] { loop.delivery.send(EventFrame.comment(format), to: slot) }
    }

    func farewell(_ slot: Slot) -> Frame? { loop.hub.farewellFrame(to: slot) }
}

/// The destination of a request for events, by its path.
enum EventRoute: Equatable {
    /// Several channels, named in the query or the body.
    case channels
    /// Issues a ticket for a token, which may appear in a URL.
    case ticket
    /// The broadcasts of one channel, or those of one event, at the paths to which POST sends them.
    case broadcasts(topic: String, event: String?)

    private static let prefixes = ["/realtime/v1/api/", "/api/"]

    /// Nil if the path is none of these, or the method sends a broadcast.
    init?(path: String, method: String) {
        guard let prefix = Self.prefixes.first(where: { path.utf8.starts(with: $0.utf8) }) else { return nil }
        let rest = Substring(path.utf8.dropFirst(prefix.utf8.count))
        switch rest {
        case "sse": self = .channels
        case "sse/ticket": self = .ticket
        default:
            if case .message(let topic, let event)? = BroadcastRoute(path: path) {
                guard method != "POST" else { return nil }
                self = .broadcasts(topic: topic, event: event)
            } else if rest.utf8.starts(with: "broadcast/".utf8), rest.hasSuffix("/events") {
                // Compares bytes: a combining mark after the slash belongs to the topic.
                let topic = rest.utf8.dropFirst("broadcast/".utf8.count).dropLast("/events".utf8.count)
                guard !topic.isEmpty else { return nil }
                self = .broadcasts(topic: String(Substring(topic)), event: nil)
            } else {
                return nil
            }
        }
    }

    var methods: [String] {
        switch self {
        case .channels: ["GET", "POST"]
        case .ticket: ["POST"]
        case .broadcasts(_, let event): event == nil ? ["GET"] : ["GET", "POST"]
        }
    }
}
