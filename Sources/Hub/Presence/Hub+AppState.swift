import Wire

/// What a client says of its app. It holds for its socket, whatever channel it is said on.
extension Hub {
    static let appStateEvent = "app_state"

    /// `app_state` as an event of its own, with `{"state":…}`.
    func appState(_ frame: ClientFrame, of membership: Membership) {
        guard case .json(let payload) = frame.body, let state = AppState(payload["state"]) else {
            return refuse(frame.ref, of: membership, .appStateUnknown)
        }
        set(state, of: membership.connection)
        reply(to: frame.ref, of: membership, ok: true)
    }

    /// The same as a broadcast, for clients that can send nothing else. It is for the hub and passed on to nobody.
    ///
    /// - Returns: false if the message is not about this: an app may have an event of this name for something else.
    func consumesAppState(_ message: Broadcast, _ frame: ClientFrame, of membership: Membership) -> Bool {
        guard let payload = message.payload(ofEvent: Self.appStateEvent),
            payload.hasOnlyMembers(where: { $0.isNamed("state") || $0.isNamed("type") }),
            let state = AppState(payload["state"])
        else { return false }
        set(state, of: membership.connection)
        if membership.acknowledges, !frame.ref.isNull { reply(to: frame.ref, of: membership, ok: true) }
        return true
    }

    func set(_ state: AppState, of connection: Connection) {
        guard connection.appState != state else { return }
        connection.appState = state
        for membership in connection.memberships {
            guard let meta = membership.channel.presence[membership.presence] else { continue }
            presenceLog?.put(record(of: meta, membership))
        }
    }
}

extension AppState {
    init?(_ json: JSON?) {
        guard let state = json?.string.flatMap(AppState.init(rawValue:)) else { return nil }
        self = state
    }
}
