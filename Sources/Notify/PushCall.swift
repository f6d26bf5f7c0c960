import HTTP
import Hub
import Push
import Stores
package import Wire

/// A request to the HTTP API of pushes, parsed and authorized.
enum PushCall: Sendable {
    case registerDevice(
        PushDestination, DeviceRegistration.Kind, PushBearer, replacing: PushToken?, keys: WebPushKeys?)
    case removeDevice(PushToken, user: Name)
    case registerActivity(id: Name, PushDestination, conversation: Name?, PushBearer)
    case listActivities(user: Name)
    case removeActivity(id: Name, user: Name)
    /// Reserved for backends, as are the next two.
    case update(id: Name, ActivityPost)
    case start(user: Name, StartCall)
    case broadcast(BroadcastCall)
    /// Notifies users; also for backends.
    case notify(UserNotification)
}

/// A backend's request to start a Live Activity on all phones of a user (push-to-start, iOS 17.2).
struct StartCall: Sendable {
    let start: ActivityStart
    /// The content-state.
    let state: JSON
    let alert: ActivityAlert
    /// The app whose tokens are used; nil for those of all apps.
    let bundle: Name?
}

/// A state for all followers of one of Apple's channels (iOS 18).
struct BroadcastCall: Sendable {
    /// Apple's id of the channel.
    let channel: Name
    let event: ActivityEvent
    /// The content-state.
    let state: JSON
    /// Seconds since 1970; nil for now.
    let timestamp: Int64?
    let alert: ActivityAlert?
    /// The time when an ending activity leaves the lock screen, in seconds since 1970.
    let dismissal: Int64?
    let environment: PushEnvironment
    let bundle: Name
}

/// Reads a call from a request whose token was verified.
struct PushCallReader {
    /// The problem with a request, in one sentence for its sender.
    struct Problem: Error {
        let status: UInt32
        let sentence: String

        init(_ sentence: String, status: UInt32 = 400) {
            self.status = status
            self.sentence = sentence
        }
    }

    /// The bundle id and the environment of requests that name none.
    let bundle: Name
    let environment: PushEnvironment
    /// The kinds of devices in use.
    let kinds: Set<PushKind>
    /// The configuration for browsers; nil if nothing is sent to them.
    let web: WebPushConfiguration?

    /// In bytes. ActivityKit's ids are UUIDs; other clients may make their own.
    private static let longestID = 200
    /// In bytes.
    private static let longestBody = 65_536

    func call(_ route: PushRoute, _ request: HTTPRequest, by claims: Claims) throws(Problem) -> PushCall {
        guard request.body.count <= Self.longestBody else {
            throw Problem("The body may have \(Self.longestBody) bytes at most.", status: 413)
        }
        if route.isForBackends {
            guard claims.role == "service_role" else {
                throw Problem("This takes a token with the role service_role.", status: 403)
            }
            return try backendCall(route, Body(request))
        }
        guard let bearer = PushBearer(claims) else {
            throw Problem("The token names no user: it needs the claim sub.", status: 403)
        }
        switch (route, request.method) {
        case (.devices, .post): return try device(Body(request), bearer)
        case (.devices, _):
            let text = request.query["device"] ?? request.query["token"] ?? ""
            guard let token = PushKind.allCases.lazy.compactMap({ PushToken(text, of: $0) }).first else {
                throw Problem(
                    "token is missing, or is none: add ?token= and the token, or a browser's endpoint, as it was registered."
                )
            }
            return .removeDevice(token, user: bearer.user)
        case (.register, .post): return try activity(Body(request), bearer)
        case (.register, _):
            guard let id = request.query["activityId"], !id.isEmpty else {
                throw Problem("activityId is missing: add ?activityId= and the activity's id.")
            }
            return .removeActivity(id: Name(id), user: bearer.user)
        case (.registration(let id), _): return .removeActivity(id: Name(id), user: bearer.user)
        default: return .listActivities(user: bearer.user)
        }
    }

    // MARK: Phones

    private func device(_ body: Body, _ bearer: PushBearer) throws(Problem) -> PushCall {
        let kind: DeviceRegistration.Kind
        switch try body.text("kind") ?? "alert" {
        case "alert": kind = .alert
        case "start": kind = .start(attributesType: try body.requiredText("attributesType"))
        case "fcm":
            let destination = try destination(body, token: "token", of: .fcm)
            return .registerDevice(
                destination, .alert, bearer, replacing: try body.token("replaces", of: .fcm), keys: nil)
        case "web": return try browser(body, bearer)
        default: throw Problem("kind is none of alert, start, fcm and web.")
        }
        return .registerDevice(
            try destination(body, token: "token", of: .apns), kind, bearer,
            replacing: try body.token("replaces", of: .apns), keys: nil)
    }

    /// Reads a browser's subscription, as returned by `PushSubscription.toJSON()`.
    private func browser(_ body: Body, _ bearer: PushBearer) throws(Problem) -> PushCall {
        try demand(.web)
        let subscription = try body.object("subscription")
        guard let token = subscription["endpoint"]?.string.flatMap({ PushToken($0, of: .web) }) else {
            throw Problem(
                "subscription.endpoint is missing, or is no https URL of at most \(PushToken.longest) visible ASCII characters."
            )
        }
        // The endpoint could be anyone's.
        do throws(EndpointError) { _ = try PushEndpoint(token.text, under: web?.rules ?? EndpointRules()) } catch {
            throw Problem(error.description)
        }
        guard let keys = WebPushKeys(subscription: subscription["keys"]) else {
            throw Problem(
                "subscription.keys is missing, or its p256dh and auth are not a point of P-256 and 16 bytes in base64url."
            )
        }
        return .registerDevice(
            PushDestination(token: token, bundle: ""), .alert, bearer, replacing: try body.token("replaces", of: .web),
            keys: keys)
    }

    private func demand(_ kind: PushKind) throws(Problem) {
        guard !kinds.contains(kind) else { return }
        let settings =
            switch kind {
            case .apns: "apns.topic, apns.team_id, apns.key_id and apns.private_key"
            case .fcm: "fcm.service_account"
            case .web: "web_push.private_key and web_push.subject"
            }
        throw Problem(
            "This hub sends nothing to devices of the kind \(kind): its operator has to set \(settings).")
    }

    private func activity(_ body: Body, _ bearer: PushBearer) throws(Problem) -> PushCall {
        .registerActivity(
            id: try id(body), try destination(body, token: "activityPushToken", of: try activityKind(body)),
            conversation: try body.text("conversationId").map { Name($0) }, bearer)
    }

    private func activityKind(_ body: Body) throws(Problem) -> PushKind {
        switch try body.text("kind") {
        case nil, "apns": .apns
        case "fcm": .fcm
        default: throw Problem("kind is neither apns nor fcm.")
        }
    }

    private func destination(
        _ body: Body, token key: String, of kind: PushKind
    ) throws(Problem) -> PushDestination {
        try demand(kind)
        guard let token = try body.token(key, of: kind) else { throw Problem("\(key) is missing.") }
        // Firebase identifies the app by the token.
        guard kind == .apns else { return PushDestination(token: token, bundle: try bundle(body) ?? "") }
        return PushDestination(token: token, environment: try environment(body), bundle: try bundle(body) ?? bundle)
    }

    private func id(_ body: Body) throws(Problem) -> Name {
        let id = try body.requiredText("activityId")
        guard id.utf8.count <= Self.longestID else {
            throw Problem("activityId has more than \(Self.longestID) bytes.")
        }
        return Name(id)
    }

    private func bundle(_ body: Body) throws(Problem) -> Name? {
        guard let bundle = try body.text("bundleId") else { return nil }
        let allowed = bundle.utf8.allSatisfy { byte in
            Character(UnicodeScalar(byte)).isASCII
                && (Character(UnicodeScalar(byte)).isLetter
                    || Character(UnicodeScalar(byte)).isNumber || byte == UInt8(ascii: ".")
                    || byte == UInt8(ascii: "-"))
        }
        guard allowed, (1...255).contains(bundle.utf8.count) else {
            throw Problem("bundleId is not a bundle id, such as com.example.app.")
        }
        return Name(bundle)
    }

    private func environment(_ body: Body) throws(Problem) -> PushEnvironment {
        guard let text = try body.text("environment") else { return environment }
        guard let named = PushEnvironment(rawValue: text) else {
            throw Problem("environment is neither sandbox nor production.")
        }
        return named
    }

    // MARK: Backends

    private func backendCall(_ route: PushRoute, _ body: Body) throws(Problem) -> PushCall {
        switch route {
        case .notify:
            do throws(NotificationProblem) {
                return .notify(try UserNotification(body.whole) { Name(PushID().text) })
            } catch {
                throw Problem(error.sentence)
            }
        case .update:
            let post = ActivityPost(
                try postedState(body), event: try event(body),
                timestamp: try body.integer("timestamp"), alert: try alert(body),
                dismissal: try body.integer("dismissalDate"))
            return .update(id: try id(body), post)
        case .start:
            guard let alert = try alert(body) else {
                throw Problem("alert is missing: Apple starts no Live Activity without one.")
            }
            let start = ActivityStart(
                attributesType: try body.requiredText("attributesType"), attributes: try body.object("attributes"),
                input: try input(body))
            return .start(
                user: Name(try body.requiredText("userId")),
                StartCall(
                    start: start, state: try body.object("contentState"), alert: alert, bundle: try bundle(body)))
        default:
            return .broadcast(
                BroadcastCall(
                    channel: Name(try body.requiredText("channelId")), event: try event(body),
                    state: try body.object("contentState"), timestamp: try body.integer("timestamp"),
                    alert: try alert(body), dismissal: try body.integer("dismissalDate"),
                    environment: try environment(body), bundle: try bundle(body) ?? bundle))
        }
    }

    private func postedState(_ body: Body) throws(Problem) -> PostedState {
        let state = try body.object("contentState")
        guard let hub = body.value("hub") else { return PostedState(state) }
        let names = hub.elements(upTo: PostedState.mostMembers + 1).map(\.string)
        guard hub.kind == .array, names.count <= PostedState.mostMembers, !names.contains(nil) else {
            throw Problem("hub is not a list of names of members of contentState, at most \(PostedState.mostMembers).")
        }
        do { return try PostedState(state, hub: names.compactMap(\.self)) } catch { throw Problem("\(error)") }
    }

    private func event(_ body: Body) throws(Problem) -> ActivityEvent {
        guard let text = try body.text("event") else { return .update }
        guard let event = ActivityEvent(rawValue: text), event != .start else {
            throw Problem("event is neither update nor end.")
        }
        return event
    }

    private func alert(_ body: Body) throws(Problem) -> ActivityAlert? {
        guard let json = body.value("alert") else { return nil }
        do { return try ActivityAlert(checking: json) } catch { throw Problem("\(error)") }
    }

    private func input(_ body: Body) throws(Problem) -> ActivityStart.Input? {
        let channel = try body.text("inputPushChannel")
        let token = body.value("inputPushToken")
        if channel != nil, token != nil {
            throw Problem("inputPushToken and inputPushChannel exclude each other: send one.")
        }
        if let channel { return .channel(channel) }
        return token.map { _ in .token }
    }
}

/// The JSON object in a request's body.
private struct Body {
    private let json: JSON

    init(_ request: HTTPRequest) throws(PushCallReader.Problem) {
        do { json = try JSON(parsing: request.body) } catch {
            throw PushCallReader.Problem("The body is not JSON from byte \(error.offset + 1) on.")
        }
        guard json.kind == .object else { throw PushCallReader.Problem("The body is not a JSON object.") }
    }

    var whole: JSON { json }

    func value(_ key: String) -> JSON? { json[key].flatMap { $0.isNull ? nil : $0 } }

    func text(_ key: String) throws(PushCallReader.Problem) -> String? {
        guard let value = value(key) else { return nil }
        guard let text = value.string, !text.isEmpty, !text.utf8.contains(0) else {
            throw PushCallReader.Problem("\(key) is not a text, or is empty.")
        }
        return text
    }

    func requiredText(_ key: String) throws(PushCallReader.Problem) -> String {
        guard let text = try text(key) else { throw PushCallReader.Problem("\(key) is missing.") }
        return text
    }

    func integer(_ key: String) throws(PushCallReader.Problem) -> Int64? {
        guard let value = value(key) else { return nil }
        guard let number = value.int else { throw PushCallReader.Problem("\(key) is not a whole number of seconds.") }
        return Int64(number)
    }

    func object(_ key: String) throws(PushCallReader.Problem) -> JSON {
        guard let value = value(key), value.kind == .object else {
            throw PushCallReader.Problem("\(key) is missing, or is not a JSON object.")
        }
        return value
    }

    func token(_ key: String, of kind: PushKind) throws(PushCallReader.Problem) -> PushToken? {
        guard let text = try text(key) else { return nil }
        guard let token = PushToken(text, of: kind) else {
            let form =
                switch kind {
                case .apns: "send its bytes in hexadecimal"
                case .fcm: "send what FirebaseMessaging.getToken() gives"
                case .web: "send the endpoint of the subscription"
                }
            throw PushCallReader.Problem("\(key) is not a token: \(form).")
        }
        return token
    }
}
