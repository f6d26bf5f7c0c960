import Documents
import Gateway
import Streams
import Wire

/// One page that is connected: what it looks at, and how it is spoken to.
struct DashboardSession: Sendable {
    let socket: OpsSocket
    let version: ProtocolVersion
    /// The topics that the page has joined, as it wrote them, each with the ref of its join.
    private(set) var joined: [Name: JSON] = [:]
    /// The number of the last line of the log that it was sent.
    var logged = 0

    /// More than any page looks at; each costs the hub something every second.
    static let mostTopics = 16

    init(socket: OpsSocket, version: ProtocolVersion) {
        self.socket = socket
        self.version = version
    }

    /// False where there are too many already.
    mutating func join(_ topic: String, _ ref: JSON) -> Bool {
        guard joined[Name(topic)] != nil || joined.count < Self.mostTopics else { return false }
        joined[Name(topic)] = ref
        return true
    }

    mutating func leave(_ topic: String) {
        joined[Name(topic)] = nil
    }

    func reply(to frame: ClientFrame, ok: Bool, _ response: JSONDocument) {
        let joinRef = joined[Name(frame.topic)] ?? frame.joinRef
        socket.send(frames(frame.topic).reply(joinRef: joinRef, ref: frame.ref, ok: ok, response: response.bytes))
    }

    func push(_ event: StaticString, _ topic: String, _ payload: [UInt8]) {
        socket.send(frames(topic).push(event, payload: payload))
    }

    /// The word that a leave is done (Phoenix).
    func close(_ topic: String, joinRef: JSON) {
        socket.send(
            frames(topic).push("phx_close", joinRef: joinRef, ref: joinRef, payload: JSONDocument.object([]).bytes))
    }

    private func frames(_ topic: String) -> ServerFrame {
        ServerFrame(version, topic: JSONString.encode(topic))
    }
}

/// What a page may look at, by the topic it joins.
enum OpsTopic: Hashable, Sendable {
    /// The last minutes, and each second from here on.
    case overview
    /// The busiest channels.
    case channels
    /// Connections that do not keep up.
    case slow
    /// Connections that came last.
    case newest
    /// One channel, by its topic as clients write it: `ops:channel:realtime:room`.
    case channel(Name)
    case connection(ConnectionID)
    /// The connections of a user, by the claim `sub`.
    case user(Name)
    /// The streams that grow most, and the newest ones.
    case streams
    case stream(StreamName)
    /// The newest alerts of a user, `ops:user_alerts:SUB`, or of a message, `ops:message_alerts:101`.
    case alerts(AlertSubject)
    /// The last lines of the log.
    case log
    /// The configuration in force.
    case configuration

    init?(_ topic: String) {
        let parts = topic.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0] == "ops" else { return nil }
        let rest = parts.count == 3 ? String(parts[2]) : nil
        switch (parts[1], rest) {
        case ("overview", nil): self = .overview
        case ("channels", nil): self = .channels
        case ("slow", nil): self = .slow
        case ("newest", nil): self = .newest
        case ("streams", nil): self = .streams
        case ("log", nil): self = .log
        case ("configuration", nil): self = .configuration
        case ("channel", let name?) where !name.isEmpty: self = .channel(Name(name))
        case ("user", let name?) where !name.isEmpty: self = .user(Name(name))
        case ("user_alerts", let name?) where !name.isEmpty: self = .alerts(.user(Name(name)))
        case ("message_alerts", let key?) where !key.isEmpty: self = .alerts(.message(Name(key)))
        case ("stream", let text?):
            guard let name = StreamName(text) else { return nil }
            self = .stream(name)
        case ("connection", let text?):
            guard let id = ConnectionID(text) else { return nil }
            self = .connection(id)
        default: return nil
        }
    }

    /// Seconds between two looks. Alerts are read from Postgres.
    var interval: Int { if case .alerts = self { 5 } else { 1 } }
}
