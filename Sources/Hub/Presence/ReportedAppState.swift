import Wire

/// The state of a client's app, as reported by the client: it determines how long the client may be cut off before
/// others are told. It applies to the socket, whichever channel reports it.
///
/// The names are those of iOS (`UIApplication.State`): a phone that locks becomes inactive, one that shows another app
/// puts this one in the background, and the system pauses its network in both.
package enum ReportedAppState: String, Sendable, CaseIterable {
    case active
    case inactive
    case background
}

extension ReportedAppState {
    /// The event that reports the state.
    static let event = "app_state"

    init?(_ json: JSON?) {
        guard let state = json?.string.flatMap(ReportedAppState.init(rawValue:)) else { return nil }
        self = state
    }

    /// Nil if a broadcast is not such a report: an app may use an event of this name for something else.
    init?(_ message: BroadcastMessage) {
        guard let payload = message.payload(ofEvent: Self.event),
            payload.hasOnlyMembers(where: { $0.isNamed("state") || $0.isNamed("type") })
        else { return nil }
        self.init(payload["state"])
    }
}

extension Presence {
    /// Handles `app_state` as an event of its own, with `{"state":…}`.
    func handleAppState(_ frame: ClientFrame, of membership: Membership, _ hub: inout HubContext) {
        guard case .json(let payload) = frame.body, let state = ReportedAppState(payload["state"]) else {
            return hub.refuseMessage(.appState, frame.ref, of: membership, .appStateUnknown)
        }
        setAppState(state, of: membership.connection, &hub)
        hub.reply(to: frame.ref, of: membership, ok: true)
    }

    /// Handles the same as a broadcast, for clients that can send nothing else. It is meant for the hub and not passed
    /// on.
    ///
    /// - Returns: false if the message is not such a report.
    func consumesAppState(
        _ message: BroadcastMessage, ref: JSON, of membership: Membership, _ hub: inout HubContext
    ) -> Bool {
        guard let state = ReportedAppState(message) else { return false }
        setAppState(state, of: membership.connection, &hub)
        if membership.acknowledges, !ref.isNull { hub.reply(to: ref, of: membership, ok: true) }
        return true
    }

    func setAppState(_ state: ReportedAppState, of connection: Connection, _ hub: inout HubContext) {
        guard connection.appState != state else { return }
        connection.appState = state
        guard log != nil || hub.hasPeers else { return }
        for membership in connection.memberships {
            guard let meta = membership.channel.presence.list[membership.presence.id] else { continue }
            log?.putRecord(record(of: meta, membership))
            if hub.hasPeers { hub.sendRelay(.appState(membership.channel.key, meta.member, state)) }
        }
    }
}
