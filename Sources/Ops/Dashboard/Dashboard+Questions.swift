import Documents
import Gateway
import Hub

/// What is asked of the loops for those who look at it.
extension Dashboard {
    /// Connections, channels and members that a page is shown of each.
    private static let most = 100
    private static let busiest = 25

    /// The first that a page is sent of a topic it has joined.
    func greet(_ session: DashboardSession, _ topic: OpsTopic, _ name: String) {
        switch topic {
        case .overview:
            let samples = state.withLock { $0.history.elements }
            session.push("history", name, history(samples).bytes)
        case .log:
            let lines = log.lines(after: 0)
            state.withLock { $0.sessions[session.socket.id]?.logged = lines.last?.number ?? 0 }
            session.push("lines", name, Self.json(lines, level: sources.logLevel()).bytes)
        case .configuration: session.push("settings", name, configuration.bytes)
        case .channels, .slow, .newest, .channel, .connection, .user: ask(topic)
        }
    }

    func ask(_ topic: OpsTopic) {
        guard mayAsk(topic) else { return }
        switch topic {
        case .channels: gateway.busiestChannels(limit: Self.busiest) { self.tell(topic, Self.json($0)) }
        case .slow: gateway.slowReaders(limit: Self.busiest) { self.tell(topic, ["sockets": Self.json($0)]) }
        case .newest: gateway.newestSockets(limit: Self.busiest) { self.tell(topic, ["sockets": Self.json($0)]) }
        case .channel(let name): gateway.channel(name, limit: Self.most) { self.tell(topic, Self.json($0)) }
        case .connection(let id): gateway.connection(id) { self.tell(topic, Self.json($0)) }
        case .user(let user):
            gateway.sockets(ofUser: user, limit: Self.most) { self.tell(topic, ["sockets": Self.json($0)]) }
        case .overview, .log, .configuration: answered(topic)
        }
    }

    private func tell(_ topic: OpsTopic, _ payload: JSONDocument) {
        answered(topic)
        push("state", topic, payload)
    }
}
