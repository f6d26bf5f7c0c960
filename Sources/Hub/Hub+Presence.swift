import Wire

/// Who is there (wire-protocol A6).
extension Hub {
    func presence(_ frame: ClientFrame, from slot: Slot, membership index: Int) {
        guard let membership = connections[Int(slot)]?.memberships[index], membership.memberSeat != nil,
            case .json(let request) = frame.body
        else { return }
        switch request["event"]?.string?.lowercased() {
        case "track":
            let payload = request["payload"] ?? .emptyObject
            guard payload.kind == .object else {
                return refuse(frame, from: slot, joinRef: membership.joinRef, .presencePayloadNotAMap)
            }
            guard payload.bytes.count <= limits.payloadBytes else {
                return refuse(frame, from: slot, joinRef: membership.joinRef, .payloadTooLarge)
            }
            // Whoever tracks wants to see the others: diffs flow from here on, as in the original.
            if membership.watcherSeat == nil { watchPresence(at: index, of: slot) }
            let ref = refPrefix + String(nextSerial(), radix: 36)
            let diff = membership.channel.presence.track(
                membership.member, key: membership.presenceKey, payload: Array(payload.bytes), ref: ref)
            if let diff { announce(diff, in: membership.channel) }
        case "untrack":
            if let diff = membership.channel.presence.untrack(membership.member) {
                announce(diff, in: membership.channel)
            }
        default:
            return refuse(frame, from: slot, joinRef: membership.joinRef, .presenceEventUnknown)
        }
        reply(to: frame, joinRef: membership.joinRef, from: slot, ok: true)
    }

    func watchPresence(at index: Int, of slot: Slot) {
        guard let connection = connections[Int(slot)] else { return }
        let seat = connection.memberships[index].channel.watchers.add(slot, connection.version)
        connections[Int(slot)]?.memberships[index].watcherSeat = seat
    }

    /// Tells everybody, the tracker included, here and on the other loops.
    func announce(_ diff: PresenceDiff, in channel: Channel) {
        if !channel.watchers.isEmpty {
            fanOut("presence_diff", [diff.encoded()[...]], in: channel, to: channel.watchers)
        }
        actions.append(.relay(.presence(channel.key, diff)))
    }
}
