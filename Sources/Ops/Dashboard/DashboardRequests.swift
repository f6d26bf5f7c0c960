import Documents
import Gateway
import Hub
import Wire

/// Requests on behalf of pages.
extension Dashboard {
    /// The most connections, channels or members shown on a page.
    static let most = 100
    static let busiest = 25

    /// Sends a page the first state of a topic that it has joined.
    func sendFirstState(_ session: DashboardSession, _ topic: OpsTopic, _ name: String) {
        switch topic {
        case .overview:
            let samples = state.withLock { $0.history.elements }
            session.pushEvent("history", name, historyDocument(samples).bytes)
        case .log:
            let lines = log.lines(after: 0)
            state.withLock { $0.sessions[session.socket.id]?.logged = lines.last?.number ?? 0 }
            session.pushEvent("lines", name, Self.logDocument(lines, level: sources.logLevel()).bytes)
        case .configuration: session.pushEvent("settings", name, configuration.bytes)
        case .channels, .slow, .newest, .channel, .connection, .user, .streams, .stream, .alerts: requestState(topic)
        }
    }

    func requestState(_ topic: OpsTopic) {
        guard mayAsk(topic) else { return }
        switch topic {
        case .channels: gateway.busiestChannels(limit: Self.busiest) { self.pushState(topic, Self.loadsDocument($0)) }
        case .slow:
            gateway.slowReaders(limit: Self.busiest) { self.pushState(topic, ["sockets": Self.socketsDocument($0)]) }
        case .newest:
            gateway.newestSockets(limit: Self.busiest) { self.pushState(topic, ["sockets": Self.socketsDocument($0)]) }
        case .channel(let name):
            gateway.channel(name.text, limit: Self.most) { self.pushState(topic, Self.channelDocument($0)) }
        case .connection(let id): gateway.connection(id) { self.pushState(topic, Self.connectionDocument($0)) }
        case .user(let user):
            gateway.sockets(ofUser: user, limit: Self.most) {
                self.pushState(topic, ["sockets": Self.socketsDocument($0)])
            }
        case .streams: askForStreams()
        case .stream(let name): askForReport(forStream: name)
        case .alerts(let subject): askForAlerts(of: subject)
        case .overview, .log, .configuration: noteAnswer(topic)
        }
    }

    func pushState(_ topic: OpsTopic, _ payload: JSONDocument) {
        noteAnswer(topic)
        pushEvent("state", topic, payload)
    }
}

/// The page's buttons. Each action is logged with the address it came from.
extension Dashboard {
    func executeCommand(_ frame: ClientFrame, _ session: DashboardSession) {
        guard case .json(let payload) = frame.body else { return }
        switch frame.event {
        case "disconnect":
            guard let id = payload["connection"]?.string.flatMap({ ConnectionID($0) }) else {
                return refuseCommand(frame, session, "say which connection: {\"connection\": ID}")
            }
            disconnectConnection(id, frame, session)
        case "disconnect_user":
            guard let user = payload["user"]?.string.map({ Name($0) }), !user.isEmpty else {
                return refuseCommand(frame, session, "say which user: {\"user\": SUB}")
            }
            disconnect(user: user, frame, session)
        case "log_level":
            guard let level = payload["level"]?.string, sources.setLogLevel(level) else {
                return refuseCommand(frame, session, "there is no such level; see log.level")
            }
            logDeed("set the level of the log to \(level)", session)
            session.reply(to: frame, ok: true, ["level": .text(level)])
        case "cancel_stream": changeStream(payload, { .cancel($0, by: nil) }, "cancelled", frame, session)
        case "delete_stream": changeStream(payload, { .delete($0) }, "deleted", frame, session)
        default:
            refuseCommand(
                frame, session,
                "there is no such command; the commands are disconnect, disconnect_user, cancel_stream, delete_stream, "
                    + "log_level"
            )
        }
    }

    private func disconnectConnection(_ id: ConnectionID, _ frame: ClientFrame, _ session: DashboardSession) {
        gateway.disconnect(id) { wasThere in
            guard wasThere else { return self.refuseCommand(frame, session, "the connection is gone already") }
            self.logDeed("disconnected the connection \(id)", session)
            session.reply(to: frame, ok: true, ["closed": .integer(1)])
        }
    }

    private func disconnect(user: Name, _ frame: ClientFrame, _ session: DashboardSession) {
        sources.disconnectUser(user) { count, silent in
            let unknown = silent.isEmpty ? "" : "; not answered by \(silent.joined(separator: ", "))"
            self.logDeed("disconnected the user \(user), who had \(count) connections\(unknown)", session)
            session.reply(
                to: frame, ok: true,
                ["closed": .integer(count), "incomplete": .array(silent.map { .text($0) })])
        }
    }

    func refuseCommand(_ frame: ClientFrame, _ session: DashboardSession, _ reason: String) {
        session.reply(to: frame, ok: false, ["reason": .text(reason)])
    }

    func logDeed(_ deed: String, _ session: DashboardSession) {
        logger.notice("the operator at \(session.socket.address) \(deed)")
    }
}
