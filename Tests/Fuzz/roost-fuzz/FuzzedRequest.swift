import DurableStreams
import HTTP
import Push
import Streams
import Wire

@testable import Gateway
@testable import Hub
@testable import Notify
@testable import ServerAPI

/// A request as the hub's APIs read it, with whatever its head and its body say.
struct FuzzedRequest {
    private let head: HTTPHead
    private let body: [UInt8]
    private static let now = HubTime(monotonic: 1 << 40, unix: 1_700_000_000_000)

    private struct Tokens: TokenVerifier {
        /// The token itself is the role.
        func verify(_ token: String, at now: HubTime) throws(Refusal) -> Claims {
            guard token != "bad" else { throw .signatureInvalid }
            return Claims(role: Name(token), subject: "u", expiresAt: 1 << 40, json: Array("{}".utf8))
        }
    }

    /// Nil where the bytes are none.
    init?(_ bytes: [UInt8]) {
        var parser = HTTPHeadParser()
        guard case .complete(let head, let length) = bytes.withUnsafeBytes({ parser.parse($0) }) else { return nil }
        self.head = head
        body = Array(bytes.dropFirst(length))
    }

    // MARK: Broadcasts

    func broadcast() {
        checkPath()
        let api = BroadcastAPI(verifier: Tokens(), limits: HubLimits(), servesStreams: true)
        guard case .admitted(let sender) = api.judge(head, at: Self.now) else { return }
        switch api.handle(body, of: sender) {
        case .refused(let response), .tooLarge(let response): write(response)
        case .accepted(var publication):
            for (number, topic) in publication.undecided.sorted().enumerated() {
                publication.decide(topic, number % 2 == 0 ? .decided(.all) : .decided([]))
            }
            write(publication.response)
            publish(publication)
        }
    }

    /// To a member of each version, and to a reader of events.
    private func publish(_ publication: Publication) {
        guard let key = publication.messages.first?.key else { return }
        let hub = Hub(
            loop: 0, limits: HubLimits(), verifier: Tokens(), random: SystemRandomNumberGenerator(),
            presence: PresenceRules(), typing: TypingRules(),
            shared: HubShared(
                recovery: SessionRegistry(window: 0), history: HistoryStore(limits: HubLimits(), window: 0),
                leases: PresenceLeases()))
        hub.advance(to: Self.now)
        let claims = Claims(role: "anon", subject: "u", expiresAt: 1 << 40, json: Array("{}".utf8))
        let topic = String(decoding: JSONString.encode(key.topic), as: UTF8.self)
        let joins = [
            (ProtocolVersion.v1, #"{"topic":\#(topic),"event":"phx_join","payload":{},"ref":"1","join_ref":"1"}"#),
            (.v2, #"["1","1",\#(topic),"phx_join",{}]"#),
        ]
        for (slot, join) in joins.enumerated() {
            hub.connect(Slot(slot), version: join.0, claims: claims)
            do { try hub.receive(Array(join.1.utf8)[...], isBinary: false, from: Slot(slot), at: Self.now) } catch {
                fatalError("a topic that cannot be joined: \(error)")
            }
        }
        for message in publication.messages {
            hub.publish(message.broadcast, of: message.event, to: message.key, by: "u")
            _ = message.broadcast.event
        }
        // A connection and its memberships hold each other until it ends.
        for slot in joins.indices { hub.disconnect(Slot(slot)) }
        hub.actions = []
    }

    /// Whatever a path names is in it byte by byte.
    private func checkPath() {
        func isPath(_ end: String) -> Bool {
            ["/api/", "/realtime/v1/api/"].contains { ($0 + end).utf8.elementsEqual(head.path.utf8) }
        }
        if case .message(let topic, let event)? = BroadcastRoute(path: head.path) {
            guard isPath("broadcast/\(topic)/events/\(event)") else { fatalError("another topic or event") }
        }
        if case .broadcasts(let topic, let event)? = EventRoute(path: head.path, method: "GET") {
            guard isPath("broadcast/\(topic)/events" + (event.map { "/" + $0 } ?? "")) else {
                fatalError("another topic or event of a reader")
            }
        }
        if case .registration(let id)? = PushRoute(path: head.path) {
            guard isPath("live-activity/registrations/" + id) else { fatalError("another registration") }
        }
        switch ServerRoute(path: head.path) {
        case .channel(let topic)?: guard isPath("channels/" + topic) else { fatalError("another channel") }
        case .user(let user)?: guard isPath("users/" + user.text) else { fatalError("another user") }
        case .refresh(let user)?:
            guard isPath("users/" + user.text + "/refresh") else { fatalError("another user to refresh") }
        default: break
        }
    }

    // MARK: Pushes

    func push() {
        checkPath()
        let reader = PushCallReader(
            bundle: "com.example.app", environment: .production, kinds: Set(PushKind.allCases), web: nil)
        guard let route = PushRoute(path: head.path), route.methods.contains(HTTPRequest(head).method) else { return }
        var request = HTTPRequest(head)
        request.body = body
        let claims = Claims(
            role: Name(request.token ?? "service_role"), subject: "u", expiresAt: 1 << 40, json: Array("{}".utf8))
        do throws(PushCallReader.Problem) {
            switch try reader.call(route, request, by: claims) {
            case .update(let id, let post): use([post, post.withoutTime], of: id)
            case .start(_, let call):
                let payload = ActivityPayload(
                    .start(call.start, alert: call.alert), timestamp: Self.now.unix / 1000, contentState: call.state,
                    staleDate: Self.now.unix / 1000)
                use { _ = try payload.bytes() }
            case .broadcast(let call):
                let (time, state) = (call.timestamp ?? 5, call.state)
                let end = ChannelBroadcast.end(
                    channel: call.channel, contentState: state, timestamp: time, staleDate: 5, alert: call.alert,
                    dismissal: call.dismissal)
                let update = ChannelBroadcast.update(
                    channel: call.channel, contentState: state, timestamp: time, staleDate: 5, alert: call.alert)
                use { _ = (try end.bytes(), try update.bytes()) }
            case .registerActivity(let id, let destination, let conversation, let bearer):
                use([], of: id, bearer.user, destination, conversation)
            case .notify(let notification): readAgain(notification)
            case .registerDevice, .removeDevice, .listActivities, .removeActivity: break
            }
        } catch {
            write(.pushProblem(error.status, error.sentence))
        }
    }

    /// As hubs read it from the outbox.
    private func readAgain(_ notification: UserNotification) {
        use {
            let again = try UserNotification(try JSON(parsing: notification.json)) { "made up" }
            guard again == notification else { fatalError("another notification") }
        }
    }

    private func use(_ body: () throws -> Void) { do { try body() } catch {} }

    private func use(
        _ posts: [ActivityPost], of id: Name, _ user: Name = "u", _ destination: PushDestination? = nil,
        _ conversation: Name? = nil
    ) {
        guard let token = PushToken("00112233445566778899aabbccddeeff") else { fatalError("no token") }
        let content: ContentTemplate
        do { content = try ContentTemplate(#"{"about":"{conversation_id}","at":"{updated_at}"}"#) } catch {
            fatalError("\(error)")
        }
        var scheduler = ActivityScheduler(ActivityRules(content: content))
        let registration = ActivityRegistration(
            id: id, user: user, session: nil,
            destination: destination ?? PushDestination(token: token, environment: .production, bundle: "a"),
            conversation: conversation, registeredAt: Self.now.unix, startedAt: Self.now.unix)
        scheduler.put(
            registration, status: .away, facts: ConversationFacts(), wasDelivered: false, isPosted: false, at: Self.now)
        var now = Self.now
        for post in posts + posts {
            _ = scheduler.post(post, to: id, at: now)
            now = HubTime(monotonic: now.monotonic + 60_000, unix: now.unix + 60_000)
            for case .stamp(let push) in scheduler.advance(to: now) {
                _ = scheduler.stamped(id, timestamp: push.timestamp, at: now)
                scheduler.sent(id, timestamp: push.timestamp, .delivered, at: now)
            }
        }
    }

    // MARK: Backends' API

    func backend() {
        checkPath()
        if let route = ServerRoute(path: head.path) {
            var request = HTTPRequest(head)
            request.body = body
            do throws(ServerCall.Problem) {
                if case .all(let question) = try ServerCall(route, request) {
                    guard ServerQuestion(question.encoded) == question else { fatalError("another question") }
                }
            } catch { write(.message(error.status, error.sentence)) }
        }
        // As another hub asks and answers.
        guard let question = ServerQuestion(body) else { return }
        let parts = body.split(separator: UInt8(ascii: "\n")).compactMap { ServerPart.decoded(Array($0)) }
        var answer = ServerAnswer()
        answer.parts = parts.map { ServerAnswer.HubPart(hub: "h", part: $0.part) }
        write(answer.response(to: question))
    }

    // MARK: Fields

    func fields() {
        _ = (TokenSource(head: head).ofUpgrade, HTTPRequest(head).token, head.bearer)
        if let refusal = WebSocketHandshake.refusal(of: head) { write(refusal) }
        for name in ["t", "ä", ""] { _ = head.cookie(name) }
        for origins in [AllowedOrigins(), AllowedOrigins(["https://*.web.example", "https://app.example"])] {
            _ = origins.admit(head)
            write(origins.preflight(for: head))
            write(origins.readable(.error(404, "Nothing"), by: head.field("origin")))
        }
        guard let forwarded = head.field("x-forwarded-for") else { return }
        for proxies in [TrustedProxies(), TrustedProxies(["10.0.0.0/8", "::1", "fd00::/7", "unix"])] {
            guard let address = proxies.client(in: forwarded) else { continue }
            guard IPAddress(address.text) == address else { fatalError("another address") }
            _ = PeerAddress(address)
        }
        // As an operator may write it.
        _ = TrustedProxies(forwarded.split(separator: ",").map(String.init))
        _ = (AllowedOrigins([forwarded]).allow(head.field("origin")), MediaType(head.field("content-type")))
    }

    // MARK: Streams

    private static let routes = [
        "/reply=reply/{conversation}", "/a=x{b}y{c};event=type", "/events={id};event=é",
    ].compactMap { StreamRoute($0) }

    func stream() {
        let call: StreamCall
        do throws(StreamComplaint) {
            guard let asked = try StreamCall(head, routes: Self.routes) else { return }
            call = asked
        } catch { return write(error.response) }
        let url = call.url(scheme: "https", host: head.field("host"))
        guard url.utf8.allSatisfy({ $0 < 0x80 }) || head.field("host") != nil else { fatalError("an odd URL") }
        guard case .read(let reading) = call.action else { return }
        var member: String?
        if case .messages(let name) = reading.mode { member = name }
        for type in ["text/plain", "application/json", "application/octet-stream"] {
            let stream = StreamBuffer(
                id: StreamID(1), name: call.name, configuration: StreamConfiguration(contentType: type))
            _ = stream.append(Array(type == "application/json" ? "{\"type\":\"x\"}\n[1]\n".utf8 : "ä\r\nöü\n".utf8))
            if case .answered(let response) = StreamPage(of: stream, reading, cursor: { "1" }) { write(response) }
            _ = StreamPage.timedOut(stream.snapshot, at: stream.snapshot.end, cursor: reading.cursor ?? "1")
            let end = stream.snapshot.end
            let start = reading.last.map { min($0.end, end) } ?? reading.position.offset(in: stream.snapshot) ?? end
            do { write(try StreamEvents.head(of: stream, from: start)) } catch { write(error.response) }
            let cursor = CacheCursor.next(at: Self.now.unix, after: reading.cursor, random: 7)
            for block in [
                StreamEvents.block(of: stream, from: start, cursor: cursor),
                StreamEvents.messages(of: stream, from: start, namedBy: member),
            ] {
                guard let block else { continue }
                guard block.end <= end else { fatalError("behind the end") }
            }
        }
    }

    /// What goes out is one answer, whatever came in.
    private func write(_ response: HTTPResponse) {
        var out: [UInt8] = []
        response.write(into: &out, leavingOutBody: false, closes: false)
        let values = response.headers.flatMap { [$0.name, $0.value] } + [response.contentType]
        guard values.allSatisfy({ $0.utf8.allSatisfy { $0 != 13 && $0 != 10 && $0 != 0 } }) else {
            fatalError("an answer with a line of the client's")
        }
    }
}

extension ActivityPost {
    fileprivate var withoutTime: ActivityPost {
        ActivityPost(content, event: event, timestamp: nil, alert: alert, dismissal: dismissal)
    }
}
