import Gateway
import Wire

/// The page's buttons. Each is logged with the address it came from.
extension Dashboard {
    func command(_ frame: ClientFrame, _ session: DashboardSession) {
        guard case .json(let payload) = frame.body else { return }
        switch frame.event {
        case "disconnect":
            guard let id = payload["connection"]?.string.flatMap({ ConnectionID($0) }) else {
                return refuse(frame, session, "say which connection: {\"connection\": ID}")
            }
            disconnect(id, frame, session)
        case "disconnect_user":
            guard let user = payload["user"]?.string, !user.isEmpty else {
                return refuse(frame, session, "say which user: {\"user\": SUB}")
            }
            disconnect(user: user, frame, session)
        case "log_level":
            guard let level = payload["level"]?.string, sources.setLogLevel(level) else {
                return refuse(frame, session, "there is no such level; see log.level")
            }
            note("set the level of the log to \(level)", session)
            session.reply(to: frame, ok: true, ["level": .text(level)])
        default: refuse(frame, session, "there is no such command; there are disconnect, disconnect_user, log_level")
        }
    }

    private func disconnect(
        _ id: ConnectionID, _ frame: ClientFrame, _ session: DashboardSession
    ) {
        gateway.disconnect(id) { wasThere in
            guard wasThere else { return self.refuse(frame, session, "the connection is gone already") }
            self.note("disconnected the connection \(id)", session)
            session.reply(to: frame, ok: true, ["closed": .integer(1)])
        }
    }

    private func disconnect(
        user: String, _ frame: ClientFrame, _ session: DashboardSession
    ) {
        gateway.disconnect(user: user) { count in
            self.note("disconnected the user \(user), who had \(count) connections", session)
            session.reply(to: frame, ok: true, ["closed": .integer(count)])
        }
    }

    private func refuse(_ frame: ClientFrame, _ session: DashboardSession, _ reason: String) {
        session.reply(to: frame, ok: false, ["reason": .text(reason)])
    }

    private func note(_ deed: String, _ session: DashboardSession) {
        logger.notice("the operator at \(session.socket.address) \(deed)")
    }
}
