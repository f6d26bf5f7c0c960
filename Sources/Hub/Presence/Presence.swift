import Wire

/// Presence (wire-protocol A6): what members track, the audiences of it, and how long a member that was cut off counts
/// as present (`Presence+Grace.swift`).
struct Presence {
    var rules: PresenceRules
    var leases: LoopLeases
    /// Nil if presence is not written down.
    let log: PresenceLog?
    /// Bytes in the lists of all channels.
    private(set) var listedBytes = 0

    init(rules: PresenceRules, leases: PresenceLeases, log: PresenceLog?) {
        self.rules = rules
        self.leases = LoopLeases(shared: leases)
        self.log = log
    }

    // MARK: Requests of members

    /// Parses a member's presence frame; nil if it was refused.
    func parseWrite(in frame: ClientFrame, of membership: Membership, _ hub: inout HubContext) -> MemberWrite? {
        guard case .json(let request) = frame.body else { return nil }
        switch request["event"]?.string?.lowercased() {
        case "track":
            let payload = request["payload"] ?? .emptyObject
            if let refusal = refusal(of: payload, hub.limits) {
                hub.refuseMessage(.presence, frame.ref, of: membership, refusal)
                return nil
            }
            guard hub.mayTrack(membership, ref: frame.ref) else { return nil }
            return .track(Array(payload.bytes))
        case "untrack": return .untrack
        default:
            hub.refuseMessage(.presence, frame.ref, of: membership, .presenceEventUnknown)
            return nil
        }
    }

    private func refusal(of payload: JSON, _ limits: HubLimits) -> Refusal? {
        guard payload.kind == .object else { return .presencePayloadNotAMap }
        guard payload.bytes.count <= limits.payloadBytes else { return .over(.payloadBytes, limits.payloadBytes) }
        guard payload.bytes.count <= rules.payloadBytes else { return .over(.presenceBytes, rules.payloadBytes) }
        return nil
    }

    /// Prepares a member for `track`: a client that tracks wants to see the others. So a member that joined without
    /// presence and may see it is sent `presence_state` first, as in the original (supabase/realtime 2.174):
    /// realtime-js and Dart withhold diffs until a state has come. A member that was cut off before resumes its earlier
    /// presence.
    ///
    /// - Returns: whether it took over a lease, so that the other loops' relays about it have to be applied before it
    ///   tracks.
    mutating func prepareToTrack(_ payload: [UInt8], of membership: Membership, _ hub: inout HubContext) -> Bool {
        let channel = membership.channel
        if membership.presence.watcherIndex == nil, membership.presence.counterIndex == nil,
            membership.mayRead(.presence)
        {
            showList(to: membership, &hub)
        }
        guard channel.presence.list[membership.presence.id] == nil else { return false }
        return takeOver(membership, saying: payload, &hub)
    }

    /// Throws if the channel's list has no room for the payload. A listed member stays as it was; an unlisted one is
    /// counted, but not shown.
    mutating func track(_ payload: [UInt8], of membership: Membership, _ hub: inout HubContext) throws(Refusal) {
        let channel = membership.channel
        let old = channel.presence.list[membership.presence.id]
        var meta = PresenceMeta(
            member: membership.presence.id, key: membership.presence.key, ref: hub.nextRef(), payload: payload)
        let bound = bound(on: meta, inPlaceOf: old, in: channel)
        if let bound, old?.isListed == true { throw fullRefusal(bound, isCounted: false) }
        if bound != nil { meta = meta.unlisted }
        if let diff = channel.presence.list.tracking(meta) {
            if old == nil { hub.counters.presenceJoins += 1 }
            log?.putRecord(record(of: meta, membership))
            announceDiff(diff, in: channel, &hub)
        }
        if let bound { throw fullRefusal(bound, isCounted: true) }
    }

    /// Withdraws a presence that its member has given up, or whose lease is over.
    mutating func withdrawMember(_ member: MemberID, in channel: LocalChannel, _ hub: inout HubContext) {
        guard let diff = channel.presence.list.untracking(member) else { return }
        hub.counters.presenceLeaves += 1
        announceDiff(diff, in: channel, &hub)
    }

    /// Announces a member whose presence was taken over by another hub or had ended: here it becomes a new presence.
    ///
    /// - Parameters:
    ///   - old: the ID of the former presence.
    ///   - payload: its payload, in case the list no longer has it.
    mutating func announceSuccessor(
        _ membership: Membership, insteadOf old: MemberID, saying payload: [UInt8], in channel: LocalChannel,
        _ hub: inout HubContext
    ) {
        let known = channel.presence.list[old]
        let payload = known?.payload ?? payload
        var diff = PresenceDiff()
        if let known { diff.leaves = [known] }
        if !payload.isEmpty {
            let meta = PresenceMeta(
                member: membership.presence.id, key: membership.presence.key, ref: hub.nextRef(), payload: payload,
                previousRef: known?.ref)
            diff.joins = [meta]
            log?.putRecord(record(of: meta, membership))
        }
        announceDiff(diff, in: channel, &hub)
    }

    // MARK: Room

    /// Returns the bound of the channel's list that the presence would exceed; nil if there is room.
    private func bound(
        on meta: PresenceMeta, inPlaceOf old: PresenceMeta?, in channel: LocalChannel
    ) -> Refusal.PresenceBound? {
        let members = channel.presence.list.listedCount - (old?.isListed == true ? 1 : 0)
        let bytes = channel.presence.list.listedBytes - (old?.listedBytes ?? 0)
        let total = listedBytes - (old?.listedBytes ?? 0) + meta.listedBytes
        let bound: Refusal.PresenceBound
        if members >= rules.listedMembers {
            bound = .members
        } else if bytes + meta.listedBytes > rules.listedBytes {
            bound = .bytes
        } else if total > rules.totalBytes {
            bound = .total
        } else {
            return nil
        }
        // Repeating a listed payload takes no room.
        if let old, old.isListed, PresenceList.saysTheSame(old.payload, meta.payload) { return nil }
        return bound
    }

    private func fullRefusal(_ bound: Refusal.PresenceBound, isCounted: Bool) -> Refusal {
        let value =
            switch bound {
            case .members: rules.listedMembers
            case .bytes: rules.listedBytes
            case .total: rules.totalBytes
            }
        return .presenceListFull(bound, value, isCounted: isCounted)
    }

    // MARK: Watching

    /// Sends a member the presence list, and all changes from now on.
    func showList(to membership: Membership, _ hub: inout HubContext) {
        addWatcher(membership)
        sendState(to: membership, &hub)
    }

    /// Sends the list again to a watcher that was spared some changes.
    func showAgain(to membership: Membership, _ hub: inout HubContext) {
        if membership.presence.watcherIndex != nil { sendState(to: membership, &hub) }
    }

    private func sendState(to membership: Membership, _ hub: inout HubContext) {
        let state = membership.channel.presence.list.state()
        let frame = membership.frames.push("presence_state", joinRef: membership.joinRef, payload: state)
        hub.sendFrame(frame, to: membership)
    }

    private func addWatcher(_ membership: Membership) {
        membership.presence.watcherIndex = membership.channel.presence.watchers.addSlot(
            membership.slot, membership.version)
    }

    /// Sends a member the number of presences, and every new number from now on: for members that want no list
    /// (`config.presence.occupancy`).
    func showOccupancy(to membership: Membership, _ hub: inout HubContext) {
        let channel = membership.channel
        membership.presence.counterIndex = channel.presence.counters.addSlot(membership.slot, membership.version)
        hub.sendFrame(membership.frames.push("broadcast", payload: [channel.presence.occupancy[...]]), to: membership)
    }

    /// Removes a member from the channel's presence audiences.
    func stopShowing(to membership: Membership, _ hub: inout HubContext) {
        let (channel, version) = (membership.channel, membership.version)
        if let index = membership.presence.watcherIndex,
            let moved = channel.presence.watchers.remove(at: index, version)
        {
            hub.member(moved, of: channel)?.presence.watcherIndex = index
        }
        if let index = membership.presence.counterIndex,
            let moved = channel.presence.counters.remove(at: index, version)
        {
            hub.member(moved, of: channel)?.presence.counterIndex = index
        }
    }

    // MARK: Changes

    /// Announces a change made here to everyone, including the tracker, on this and the other loops.
    private mutating func announceDiff(_ diff: PresenceDiff, in channel: LocalChannel, _ hub: inout HubContext) {
        for meta in diff.leaves { log?.remove(meta.ref) }
        applyDiff(diff, to: channel, &hub)
        hub.sendRelay(.presence(channel.key, diff))
    }

    /// Applies a change made on this or another loop.
    mutating func applyDiff(_ diff: PresenceDiff, to channel: LocalChannel, _ hub: inout HubContext) {
        updateList(diff, in: channel)
        sendOccupancyInTime(in: channel, &hub)
        let next = channel.presence.diffSentAt + rules.mergeInterval
        let size = max(channel.presence.list.count, channel.presence.watchers.count)
        if !channel.presence.watchers.isEmpty, size >= rules.mergedFrom, hub.now.monotonic < next {
            hub.scheduleDuty(.presence(channel.key), at: next)
        } else {
            sendDiff(in: channel, &hub)
        }
    }

    /// Applies a change to a channel's list. Every change goes through here, so that the total over all channels is
    /// known.
    private mutating func updateList(_ diff: PresenceDiff, in channel: LocalChannel) {
        listedBytes -= channel.presence.list.listedBytes
        channel.presence.list.applyDiff(diff)
        listedBytes += channel.presence.list.listedBytes
    }

    /// Shows a presence from before the last process ended, before any client joins. Its lease is kept with the others.
    mutating func restoreMember(_ meta: PresenceMeta, in channel: LocalChannel) {
        var diff = PresenceDiff()
        diff.joins = [meta]
        updateList(diff, in: channel)
        _ = channel.presence.list.takeNews()
    }

    /// Sends the watchers all changes since the last time (the duty `.presence`).
    func sendDiff(in channel: LocalChannel, _ hub: inout HubContext) {
        guard channel.presence.list.hasNews else { return }
        let diff = channel.presence.list.takeNews()
        guard !channel.presence.watchers.isEmpty, !diff.showsNothing else { return }
        channel.presence.diffSentAt = hub.now.monotonic
        for part in diff.parts(upTo: rules.listedBytes) {
            hub.fanOut(
                "presence_diff", [part.encoded()[...]], in: channel, to: channel.presence.watchers,
                kind: .step(.presence(channel.key)))
        }
    }

    private func sendOccupancyInTime(in channel: LocalChannel, _ hub: inout HubContext) {
        guard !channel.presence.counters.isEmpty else { return }
        let next = channel.presence.occupancySentAt + rules.occupancyInterval
        if hub.now.monotonic < next {
            hub.scheduleDuty(.occupancy(channel.key), at: next)
        } else {
            sendOccupancy(in: channel, &hub)
        }
    }

    /// Sends the number of presences to members that asked for it, if it has changed (the duty `.occupancy`).
    func sendOccupancy(in channel: LocalChannel, _ hub: inout HubContext) {
        guard !channel.presence.counters.isEmpty else { return }
        let payload = channel.presence.occupancy
        guard payload != channel.presence.occupancySent else { return }
        channel.presence.occupancySent = payload
        channel.presence.occupancySentAt = hub.now.monotonic
        hub.fanOut("broadcast", [payload[...]], in: channel, to: channel.presence.counters)
    }

    // MARK: Writing down

    func record(of meta: PresenceMeta, _ membership: Membership) -> PresenceRecord {
        PresenceRecord(
            channel: membership.channel.key, ref: meta.ref, key: meta.key, hasMadeKey: membership.presence.hasMadeKey,
            user: membership.claims.subject, payload: meta.payload, appState: membership.connection.appState)
    }
}

/// The state that `Presence` keeps for a channel.
struct ChannelPresence {
    var list = PresenceList()
    /// Members that asked for presence, and may see it.
    var watchers = Audience()
    /// Members that asked for the number of presences.
    var counters = Audience()
    /// The last times at which watchers were sent a diff, and counters a number, in monotonic milliseconds; and that
    /// number.
    fileprivate var diffSentAt = Int64.min / 2
    fileprivate var occupancySentAt = Int64.min / 2
    fileprivate var occupancySent: [UInt8] = []

    /// Has the form of a broadcast, because every client can listen to those.
    fileprivate var occupancy: [UInt8] {
        let count = "{\"members\":\(list.count),\"keys\":\(list.keyCount)}"
        return Array("{\"event\":\"presence_occupancy\",\"payload\":\(count),\"type\":\"broadcast\"}".utf8)
    }
}

/// The state that `Presence` keeps for a membership.
struct MemberPresence {
    /// The key shown to clients: the client's own, or one made by the hub.
    var key: String
    let hasMadeKey: Bool
    /// The ID it is tracked under: its own, or that of a member whose presence it took over.
    var id: MemberID
    /// Positions in `ChannelPresence.watchers` and `.counters`.
    var watcherIndex: Int32?
    var counterIndex: Int32?

    /// - Parameter key: nil if the client gave none.
    init(key: String?, id: MemberID, orElse made: @autoclosure () -> String) {
        self.key = key ?? made()
        hasMadeKey = key == nil
        self.id = id
    }

    /// The key given by the client; nil if it gave none.
    var givenKey: String? { hasMadeKey ? nil : key }
}
