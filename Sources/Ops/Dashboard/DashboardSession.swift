import Documents
import Gateway
import Streams
import Wire

/// A connected page: its topics, and how to send to it.
struct DashboardSession: Sendable {
    let socket: OpsSocket
    let version: ProtocolVersion
    /// The topics that the page has joined, as it wrote them, each with the ref of its join.
    private(set) var joined: [Name: JSON] = [:]
    /// The number of the last line of the log that it was sent.
    var logged = 0

    /// More than any page needs; each topic costs the hub work every second.
    static let mostTopics = 16

    init(socket: OpsSocket, version: ProtocolVersion) {
        self.socket = socket
        self.version = version
    }

    /// Returns false if there are too many topics already.
    mutating func addTopic(_ topic: String, _ ref: JSON) -> Bool {
        guard joined[Name(topic)] != nil || joined.count < Self.mostTopics else { return false }
        joined[Name(topic)] = ref
        return true
    }

    mutating func removeTopic(_ topic: String) {
        joined[Name(topic)] = nil
    }

    func reply(to frame: ClientFrame, ok: Bool, _ response: JSONDocument) {
        let joinRef = joined[Name(frame.topic)] ?? frame.joinRef
        socket.send(serverFrame(frame.topic).reply(joinRef: joinRef, ref: frame.ref, ok: ok, response: response.bytes))
    }

    func pushEvent(_ event: StaticString, _ topic: String, _ payload: [UInt8]) {
        socket.send(serverFrame(topic).push(event, payload: payload))
    }

    /// Confirms that a leave is done (Phoenix).
    func sendClose(_ topic: String, joinRef: JSON) {
        socket.send(
            serverFrame(topic).push("phx_close", joinRef: joinRef, ref: joinRef, payload: JSONDocument.object([]).bytes)
        )
    }

    private func serverFrame(_ topic: String) -> ServerFrame {
        ServerFrame(version, topic: JSONString.encode(topic))
    }
}

/// The topics that a page may join.
enum OpsTopic: Hashable, Sendable {
    /// The last minutes, then each second.
    case overview
    /// The busiest channels.
    case channels
    /// Connections that are too slow.
    case slow
    /// The newest connections.
    case newest
    /// One channel, by its topic as clients write it: `ops:channel:realtime:room`.
    case channel(Name)
    case connection(ConnectionID)
    /// The connections of a user, by the claim `sub`.
    case user(Name)
    /// The fastest growing streams, and the newest ones.
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

    /// Seconds between two refreshes. Alerts are read from Postgres.
    var interval: Int { if case .alerts = self { 5 } else { 1 } }
}
