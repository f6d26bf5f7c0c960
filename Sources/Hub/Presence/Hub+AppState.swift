import Wire

/// What a client says of its app. It holds for its socket, whatever channel it is said on.
extension Hub {
    static let appStateEvent = "app_state"

    /// `app_state` as an event of its own, with `{"state":…}`.
    func appState(_ frame: ClientFrame, from slot: Slot, membership index: Int) {
        guard let membership = connections[Int(slot)]?.memberships[index] else { return }
        guard case .json(let payload) = frame.body, let state = AppState(payload["state"]) else {
            return refuse(frame, from: slot, joinRef: membership.joinRef, .appStateUnknown)
        }
        set(state, of: slot)
        reply(to: frame, joinRef: membership.joinRef, from: slot, ok: true)
    }

    /// The same as a broadcast, for clients that can send nothing else. It is for the hub and passed on to nobody.
    ///
    /// - Returns: false if the message is not about this: an app may have an event of this name for something else.
    func consumesAppState(_ message: Broadcast, _ frame: ClientFrame, from slot: Slot, membership index: Int) -> Bool {
        guard let payload = message.payload(ofEvent: Self.appStateEvent),
            payload.hasOnlyMembers(where: { $0.isNamed("state") || $0.isNamed("type") }),
            let state = AppState(payload["state"])
        else { return false }
        guard let membership = connections[Int(slot)]?.memberships[index] else { return true }
        set(state, of: slot)
        if membership.acknowledges, !frame.ref.isNull {
            reply(to: frame, joinRef: membership.joinRef, from: slot, ok: true)
        }
        return true
    }

    func set(_ state: AppState, of slot: Slot) {
        guard let connection = connections[Int(slot)], connection.appState != state else { return }
        connections[Int(slot)]?.appState = state
        for membership in connection.memberships {
            guard let meta = membership.channel.presence[membership.presence] else { continue }
            presenceLog?.put(record(of: meta, membership, slot))
        }
    }
}

extension AppState {
    init?(_ json: JSON?) {
        guard let state = json?.string.flatMap(AppState.init(rawValue:)) else { return nil }
        self = state
    }
}
