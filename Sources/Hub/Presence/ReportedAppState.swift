import Wire

/// What a client's app is doing, as it says itself: how long it may be cut off before others hear of it depends on it. It
/// holds for its socket, whatever channel it is said on.
///
/// The names are those of iOS (`UIApplication.State`): a phone that locks becomes inactive, one that shows another app puts
/// this one in the background, and the system pauses its network in both.
package enum ReportedAppState: String, Sendable, CaseIterable {
    case active
    case inactive
    case background
}

extension ReportedAppState {
    /// The event that says it.
    static let event = "app_state"

    init?(_ json: JSON?) {
        guard let state = json?.string.flatMap(ReportedAppState.init(rawValue:)) else { return nil }
        self = state
    }

    /// Nil where a broadcast is not about this: an app may have an event of this name for something else.
    init?(_ message: BroadcastMessage) {
        guard let payload = message.payload(ofEvent: Self.event),
            payload.hasOnlyMembers(where: { $0.isNamed("state") || $0.isNamed("type") })
        else { return nil }
        self.init(payload["state"])
    }
}

extension Presence {
    /// Takes `app_state` as an event of its own, with `{"state":…}`.
    func appState(_ frame: ClientFrame, of membership: Membership, _ hub: inout HubContext) {
        guard case .json(let payload) = frame.body, let state = ReportedAppState(payload["state"]) else {
            return hub.refuse(.appState, frame.ref, of: membership, .appStateUnknown)
        }
        set(state, of: membership.connection, &hub)
        hub.reply(to: frame.ref, of: membership, ok: true)
    }

    /// Takes the same as a broadcast, for clients that can send nothing else. It is for the hub and passed on to nobody.
    ///
    /// - Returns: false if the message is not about this.
    func consumesAppState(
        _ message: BroadcastMessage, ref: JSON, of membership: Membership, _ hub: inout HubContext
    ) -> Bool {
        guard let state = ReportedAppState(message) else { return false }
        set(state, of: membership.connection, &hub)
        if membership.acknowledges, !ref.isNull { hub.reply(to: ref, of: membership, ok: true) }
        return true
    }

    func set(_ state: ReportedAppState, of connection: Connection, _ hub: inout HubContext) {
        guard connection.appState != state else { return }
        connection.appState = state
        guard log != nil || hub.hasPeers else { return }
        for membership in connection.memberships {
            guard let meta = membership.channel.presence.list[membership.presence.id] else { continue }
            log?.put(record(of: meta, membership))
            if hub.hasPeers { hub.relay(.appState(membership.channel.key, meta.member, state)) }
        }
    }
}
