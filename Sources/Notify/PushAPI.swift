package import HTTP
package import Hub
import Push
import Wire

/// The HTTP API of pushes: apps register phones and Live Activities, backends update, start and broadcast.
///
/// Requests are verified and parsed on the event loop that received them. Calls that need the database go to the push service, which
/// replies from its own thread.
package struct PushAPI: HTTPHandler {
    private let service: PushService?
    private let verifier: any TokenVerifier
    private let clock: @Sendable () -> HubTime

    /// - Parameter service: nil if the operator has configured no pushes.
    package init(service: PushService?, verifier: any TokenVerifier, clock: @escaping @Sendable () -> HubTime) {
        self.service = service
        self.verifier = verifier
        self.clock = clock
    }

    package func judge(_ head: HTTPRequest) -> HTTPVerdict {
        guard let route = PushRoute(path: head.path) else { return .notServed }
        if case .key = route, head.method == .get { return .answered(key) }
        guard service != nil else {
            return .answered(
                .pushProblem(
                    501,
                    "This hub sends no pushes: its operator has to set apns.topic, apns.team_id, apns.key_id and "
                        + "apns.private_key, or fcm.service_account."))
        }
        guard route.methods.contains(head.method) else {
            let methods = route.methods.map(\.rawValue)
            var response = HTTPResponse.pushProblem(405, "Use \(methods.joined(separator: " or ")).")
            response.headers.append(("allow", (methods + ["OPTIONS"]).joined(separator: ", ")))
            return .answered(response)
        }
        guard let token = head.token else {
            return .answered(.pushProblem(401, "A token is missing: send the header Authorization: Bearer TOKEN."))
        }
        do { _ = try verifier.verifyToken(token, at: clock()) } catch {
            return .answered(.pushProblem(401, error.message))
        }
        return .admitted
    }

    /// The key that pages subscribe with; it is public.
    private var key: HTTPResponse {
        guard let web = service?.reader.web else {
            return .pushProblem(
                404,
                "This hub sends nothing to browsers: its operator has to set web_push.private_key and web_push.subject."
            )
        }
        return .push(200, JSONWriter.object { $0.writeMember("publicKey", web.key.publicText) })
    }

    package func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer? {
        guard let route = PushRoute(path: request.path), let service, let token = request.token else { return nil }
        let claims: Claims
        do throws(Refusal) { claims = try verifier.verifyToken(token, at: clock()) } catch {
            return .now(.pushProblem(401, error.message))
        }
        let call: PushCall
        do throws(PushCallReader.Problem) { call = try service.reader.call(route, request, by: claims) } catch {
            return .now(.pushProblem(error.status, error.sentence))
        }
        guard service.take(call, reply) else {
            return .now(.pushProblem(503, "Too many requests wait for the database; try again in a moment."))
        }
        return .later
    }
}

extension HTTPResponse {
    /// A problem in the form of the API's other calls: a JSON object with one sentence under `message`.
    static func pushProblem(_ status: UInt32, _ sentence: String) -> HTTPResponse {
        push(status, Array("{\"message\":".utf8) + JSONString.encode(sentence) + [UInt8(ascii: "}")])
    }

    /// Returns an answer that pages of any origin may read: the API is protected by the token, not by a cookie.
    static func push(_ status: UInt32, _ body: [UInt8]) -> HTTPResponse {
        HTTPResponse(
            status: status, contentType: "application/json", headers: [("access-control-allow-origin", "*")], body: body
        )
    }
}

/// The paths of the push API, below `/api` and `/realtime/v1/api`.
enum PushRoute {
    case devices, register, registrations, update, start, broadcast, notify
    /// `/push/key`.
    case key
    /// `/live-activity/registrations/{id}`.
    case registration(String)

    private static let prefixes = ["/realtime/v1/api/", "/api/"]
    private static let registrationPrefix = "live-activity/registrations/"

    /// Nil if the path does not belong to this API.
    init?(path: String) {
        // Compares bytes: a mark that combines with a slash belongs to the text after it.
        guard let prefix = Self.prefixes.first(where: { path.utf8.starts(with: $0.utf8) }) else { return nil }
        let rest = Substring(path.utf8.dropFirst(prefix.utf8.count))
        switch rest {
        case "devices": self = .devices
        case "notify": self = .notify
        case "push/key": self = .key
        case "live-activity/register": self = .register
        case "live-activity/registrations": self = .registrations
        case "live-activity/update": self = .update
        case "live-activity/start": self = .start
        case "live-activity/broadcast": self = .broadcast
        default:
            let id = rest.utf8.dropFirst(Self.registrationPrefix.utf8.count)
            guard rest.utf8.starts(with: Self.registrationPrefix.utf8), !id.isEmpty else { return nil }
            self = .registration(String(Substring(id)))
        }
    }

    var methods: [HTTPRequest.Method] {
        switch self {
        case .devices, .register: [.post, .delete]
        case .registrations, .key: [.get]
        case .registration: [.delete]
        case .update, .start, .broadcast, .notify: [.post]
        }
    }

    /// Whether only backends may call this: it sets what is shown, which a user's own token must not.
    var isForBackends: Bool {
        switch self {
        case .update, .start, .broadcast, .notify: true
        case .devices, .register, .registrations, .registration, .key: false
        }
    }
}
