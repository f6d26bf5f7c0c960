import Documents
import Gateway
import Wire

/// One page that is connected: what it looks at, and how it is spoken to.
struct DashboardSession: Sendable {
    let socket: OpsSocket
    let version: ProtocolVersion
    /// By topic as the page wrote it: the ref of its join.
    private(set) var joined: [String: JSON] = [:]
    /// Up to which line of the log it was told.
    var logged = 0

    /// More than any page looks at; each costs the hub something every second.
    static let mostTopics = 16

    init(socket: OpsSocket, version: ProtocolVersion) {
        self.socket = socket
        self.version = version
    }

    /// False where there are too many already.
    mutating func join(_ topic: String, _ ref: JSON) -> Bool {
        guard joined[topic] != nil || joined.count < Self.mostTopics else { return false }
        joined[topic] = ref
        return true
    }

    mutating func leave(_ topic: String) {
        joined[topic] = nil
    }

    func reply(to frame: ClientFrame, ok: Bool, _ response: JSONDocument) {
        let joinRef = joined[frame.topic] ?? frame.joinRef
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
