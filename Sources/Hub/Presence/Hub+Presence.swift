import Wire

/// Who is there (wire-protocol A6).
extension Hub {
    func presence(_ frame: ClientFrame, of membership: Membership) {
        guard membership.join.isJoined || membership.pass != nil, case .json(let request) = frame.body else { return }
        switch request["event"]?.string?.lowercased() {
        case "track":
            let payload = request["payload"] ?? .emptyObject
            guard payload.kind == .object else {
                return refuse(frame.ref, of: membership, .presencePayloadNotAMap)
            }
            guard payload.bytes.count <= limits.payloadBytes else {
                return refuse(frame.ref, of: membership, .over(.payloadBytes, limits.payloadBytes))
            }
            guard payload.bytes.count <= presenceRules.payloadBytes else {
                let refusal = Refusal.over(.presenceBytes, presenceRules.payloadBytes)
                return refuse(frame.ref, of: membership, refusal)
            }
            guard mayTrack(frame, membership) else { return }
            write(.track(Array(payload.bytes)), ref: frame.ref, of: membership)
        case "untrack": write(.untrack, ref: frame.ref, of: membership)
        default: refuse(frame.ref, of: membership, .presenceEventUnknown)
        }
    }

    /// Throws where the channel's list has no room for it. Who is in the list stays as it was; who is not is counted, and
    /// not shown.
    func track(_ payload: [UInt8], of membership: Membership) throws(Refusal) {
        let channel = membership.channel
        // Whoever tracks wants to see the others: diffs flow from here on, as in the original, to those who may see them.
        if membership.watcherSeat == nil, membership.counterSeat == nil, membership.mayRead(.presence) {
            watchPresence(membership)
        }
        if channel.presence[membership.presence] == nil {
            takeOverPresence(of: membership, saying: payload)
        }
        let old = channel.presence[membership.presence]
        var meta = PresenceMeta(
            member: membership.presence, key: membership.presenceKey, ref: refPrefix + String(nextSerial(), radix: 36),
            payload: payload)
        let bound = bound(on: meta, inPlaceOf: old, in: channel)
        if let bound, old?.isListed == true { throw full(bound, isCounted: false) }
        if bound != nil { meta = meta.unlisted }
        if let diff = channel.presence.tracking(meta) {
            if old == nil { counters.presenceJoins += 1 }
            presenceLog?.put(record(of: meta, membership))
            announce(diff, in: channel)
        }
        if let bound { throw full(bound, isCounted: true) }
    }

    /// What the channel's list has too much of for it; nil where there is room.
    private func bound(
        on meta: PresenceMeta, inPlaceOf old: PresenceMeta?, in channel: Channel
    ) -> Refusal.PresenceBound? {
        let presence = channel.presence
        let members = presence.listedCount - (old?.isListed == true ? 1 : 0)
        let bytes = presence.listedBytes - (old?.listedBytes ?? 0)
        let total = presenceBytes - (old?.listedBytes ?? 0) + meta.listedBytes
        let bound: Refusal.PresenceBound
        if members >= presenceRules.listedMembers {
            bound = .members
        } else if bytes + meta.listedBytes > presenceRules.listedBytes {
            bound = .bytes
        } else if total > presenceRules.totalBytes {
            bound = .total
        } else {
            return nil
        }
        // Who says what is listed already takes no room.
        if let old, old.isListed, Presence.saysTheSame(old.payload, meta.payload) { return nil }
        return bound
    }

    /// Every change of a channel's presence goes through here, so that the sum of all channels is known.
    func apply(_ diff: PresenceDiff, to channel: Channel) {
        presenceBytes -= channel.presence.listedBytes
        channel.presence.apply(diff)
        presenceBytes += channel.presence.listedBytes
    }

    private func full(_ bound: Refusal.PresenceBound, isCounted: Bool) -> Refusal {
        let value =
            switch bound {
            case .members: presenceRules.listedMembers
            case .bytes: presenceRules.listedBytes
            case .total: presenceRules.totalBytes
            }
        return .presenceListFull(bound, value, isCounted: isCounted)
    }

    /// Takes a presence away that its member, or its lease, has given up.
    func withdrawPresence(_ member: MemberID, in channel: Channel) {
        guard let diff = channel.presence.untracking(member) else { return }
        counters.presenceLeaves += 1
        announce(diff, in: channel)
    }

    // MARK: Watching

    /// Sends who is there, and from here on who comes and goes.
    func showPresence(to membership: Membership) {
        watchPresence(membership)
        sendPresence(to: membership)
    }

    /// Says who is there to a member who was spared some who came and went. Nothing, if it left the channel meanwhile.
    func showPresence(of channel: ChannelKey, to slot: Slot) {
        let membership = connection(slot)?.memberships.first { $0.channel.key == channel && $0.watcherSeat != nil }
        if let membership { sendPresence(to: membership) }
    }

    private func sendPresence(to membership: Membership) {
        let state = membership.frames.push(
            "presence_state", joinRef: membership.joinRef, payload: membership.channel.presence.state())
        actions.append(.send(state, to: membership.slot))
    }

    private func watchPresence(_ membership: Membership) {
        membership.watcherSeat = membership.channel.watchers.add(membership.slot, membership.version)
    }

    // MARK: Telling

    /// A change that is made here: for everybody, the tracker included, here and on the other loops.
    func announce(_ diff: PresenceDiff, in channel: Channel) {
        for meta in diff.leaves { presenceLog?.remove(meta.ref) }
        apply(diff, to: channel)
        presenceChanged(in: channel)
        actions.append(.relay(.presence(channel.key, diff)))
    }

    /// Tells the watchers, at once or together with what comes in the next moment.
    func presenceChanged(in channel: Channel) {
        occupancyChanged(in: channel)
        let next = channel.presenceToldAt + presenceRules.mergeInterval
        let size = max(channel.presence.count, channel.watchers.count)
        if !channel.watchers.isEmpty, size >= presenceRules.mergedFrom, latest.monotonic < next {
            context.schedule(.presence(channel.key), at: next)
        } else {
            tellPresence(of: channel)
        }
    }

    func tellPresence(of channel: Channel) {
        guard channel.presence.hasNews else { return }
        let diff = channel.presence.tell()
        guard !channel.watchers.isEmpty, !diff.showsNothing else { return }
        channel.presenceToldAt = latest.monotonic
        for part in diff.parts(upTo: presenceRules.listedBytes) {
            context.fanOut(
                "presence_diff", [part.encoded()[...]], in: channel, to: channel.watchers,
                kind: .step(.presence(channel.key)))
        }
    }
}
