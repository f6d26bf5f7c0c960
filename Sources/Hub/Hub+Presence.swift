import Wire

/// Who is there (wire-protocol A6).
extension Hub {
    func presence(_ frame: ClientFrame, from slot: Slot, membership index: Int) {
        guard let membership = connections[Int(slot)]?.memberships[index],
            membership.pending == nil || membership.pass != nil,
            case .json(let request) = frame.body
        else { return }
        switch request["event"]?.string?.lowercased() {
        case "track":
            let payload = request["payload"] ?? .emptyObject
            guard payload.kind == .object else {
                return refuse(frame, from: slot, joinRef: membership.joinRef, .presencePayloadNotAMap)
            }
            guard payload.bytes.count <= limits.payloadBytes else {
                return refuse(frame, from: slot, joinRef: membership.joinRef, .over(.payloadBytes, limits.payloadBytes))
            }
            guard mayTrack(frame, membership, from: slot) else { return }
            write(.track(Array(payload.bytes)), ref: frame.ref, from: slot, membership: index)
        case "untrack": write(.untrack, ref: frame.ref, from: slot, membership: index)
        default: refuse(frame, from: slot, joinRef: membership.joinRef, .presenceEventUnknown)
        }
    }

    func track(_ payload: [UInt8], from slot: Slot, membership index: Int) {
        guard let membership = connections[Int(slot)]?.memberships[index] else { return }
        // Whoever tracks wants to see the others: diffs flow from here on, as in the original, to those who may see them.
        if membership.watcherSeat == nil, membership.mayRead(.presence) { watchPresence(at: index, of: slot) }
        let ref = refPrefix + String(nextSerial(), radix: 36)
        let diff = membership.channel.presence.track(
            membership.member, key: membership.presenceKey, payload: payload, ref: ref)
        if let diff { announce(diff, in: membership.channel) }
    }

    /// Sends who is there, and from here on who comes and goes.
    func showPresence(at index: Int, of slot: Slot) {
        watchPresence(at: index, of: slot)
        guard let version = connections[Int(slot)]?.version, let membership = connections[Int(slot)]?.memberships[index]
        else { return }
        show(membership.channel, to: slot, version, joinRef: membership.joinRef)
    }

    /// Says who is there to a member who was spared some who came and went. Nothing, if it left the channel meanwhile.
    package func showPresence(of channel: ChannelKey, to slot: Slot) {
        guard let connection = connections[Int(slot)],
            let membership = connection.memberships.first(where: { $0.channel.key == channel && $0.watcherSeat != nil })
        else { return }
        show(membership.channel, to: slot, connection.version, joinRef: membership.joinRef)
    }

    private func show(_ channel: Channel, to slot: Slot, _ version: ProtocolVersion, joinRef: JSON) {
        let state = channel.frames(version).push("presence_state", joinRef: joinRef, payload: channel.presence.state())
        actions.append(.send(state, to: slot))
    }

    private func watchPresence(at index: Int, of slot: Slot) {
        guard let connection = connections[Int(slot)] else { return }
        let seat = connection.memberships[index].channel.watchers.add(slot, connection.version)
        connections[Int(slot)]?.memberships[index].watcherSeat = seat
    }

    /// Tells everybody, the tracker included, here and on the other loops.
    func announce(_ diff: PresenceDiff, in channel: Channel) {
        if !channel.watchers.isEmpty {
            fanOut(
                "presence_diff", [diff.encoded()[...]], in: channel, to: channel.watchers, kind: .presence(channel.key))
        }
        actions.append(.relay(.presence(channel.key, diff)))
    }
}
