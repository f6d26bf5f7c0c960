import Wire

/// Kept broadcasts for clients that drop off and come back (`config.broadcast.history`); `HistoryStore` explains the
/// design.
struct History {
    /// The kept messages, shared by all loops.
    let store: HistoryStore
    /// Bytes of kept messages sent to each socket in this second.
    private var sent: [Slot: Int] = [:]

    init(store: HistoryStore) {
        self.store = store
    }

    // MARK: Joining

    /// Adds a joining member to the channel's history; from now on messages are kept.
    ///
    /// - Parameters:
    ///   - membership: has not been added to the channel yet.
    ///   - trace: what the join reveals about its client. From now on the socket is pinged now and then, and the pongs
    ///     say what it has received.
    func addMember(
        _ membership: Membership, _ request: HistoryRequest, _ trace: ClientTrace, _ hub: inout HubContext
    ) -> MemberHistory {
        let channel = membership.channel
        let isOff = hub.limits.historyMessages <= 0
        let kept = isOff ? nil : attachChannel(channel, request, &hub)
        kept?.memberCount += 1
        let session = HistorySession(
            key: HistoryKey(membership.claims, presenceKey: membership.presence.givenKey), member: membership.member,
            trace: trace, at: kept?.shown ?? 0)
        let part = MemberHistory(request: request, session: session, isOff: isOff)
        guard !isOff else { return part }
        guard membership.connection.reader == nil else {
            // A reader states its own position, or starts now.
            if let kept, part.request.after == nil { part.request.after = kept.shownID.text }
            return part
        }
        let doubts = store.addSession(session, in: channel.key)
        // A client that names an ID states its own position.
        guard request.after == nil, !doubts.isEmpty else { return part }
        hub.pingDoubts(doubts)
        part.doubts = doubts
        return part
    }

    private func attachChannel(_ channel: LocalChannel, _ request: HistoryRequest, _ hub: inout HubContext)
        -> ChannelHistory
    {
        // Called for every member, not only the first: the highest limits that any of them asks for apply.
        let (position, id) = store.attachLoop(
            hub.loop, to: channel.key, request, chance: hub.random.next(), at: hub.now)
        if hub.hasPeers { hub.sendRelay(.keeping(channel.key)) }
        if let kept = channel.history { return kept }
        let kept = ChannelHistory(shown: position, id: id)
        channel.history = kept
        return kept
    }

    /// Moves a member's session to its new token. A client that comes back for the session brings that token.
    ///
    /// - Parameter trace: makes the new trace of the client from the old one.
    func renewSession(_ membership: Membership, _ trace: (ClientTrace) -> ClientTrace) {
        guard let member = membership.history, !member.isOff else { return }
        let key = HistoryKey(membership.claims, presenceKey: membership.presence.givenKey)
        let old = member.session
        guard key != old.key else { return }
        member.session = store.renewSession(old, key, trace(old.trace), in: membership.channel.key)
    }

    /// Returns what a member about to be let in missed; nil if it did not ask for history or may not hear broadcasts.
    /// All news must have been passed on to the other members of its channel, so that this loop is at one position for
    /// all of them.
    func answerMember(_ membership: Membership, _ hub: inout HubContext) -> HistoryAnswer? {
        guard let member = membership.history, member.isOwedAnAnswer, membership.mayRead(.broadcast),
            let kept = membership.channel.history
        else { return nil }
        let sent = sent[membership.slot] ?? 0
        let arrival = HistoryArrival(
            session: member.session, firstPing: membership.connection.nextPing, after: member.request.after,
            liveFrom: kept.shown, room: hub.limits.historyBytesPerReturn - sent, isFresh: sent == 0,
            hasSession: membership.connection.reader == nil)
        guard let answer = store.answerArrival(arrival, in: membership.channel.key) else { return nil }
        member.isAnswered = true
        return answer
    }

    /// Returns a join's response, with the outcome of its request for history added.
    static func response(_ response: [UInt8], _ membership: Membership, _ missed: HistoryAnswer?) -> [UInt8] {
        guard let member = membership.history, member.isOff || missed != nil else { return response }
        var out = Array(response.dropLast())
        out += ",\"history\":".utf8
        if let missed {
            out += missed.json
        } else {
            out += JSONWriter.object { HistoryGap.off.writeMembers(to: &$0) }
        }
        out.append(UInt8(ascii: "}"))
        return out
    }

    /// Lets a member hear the channel's broadcasts, after sending what it missed.
    ///
    /// - Returns: false if the member has no part in the history and belongs into `LocalChannel.members`.
    mutating func letHear(_ membership: Membership, after missed: HistoryAnswer?, _ hub: inout HubContext) -> Bool {
        guard let member = membership.history, !member.isOff, let kept = membership.channel.history else {
            return false
        }
        if let missed { sendMissed(missed, to: membership, &hub) }
        membership.movePosition { $0.history = kept.shownID.text }
        hub.sendPositionAlone(to: membership.connection)
        member.index = kept.audience.addSlot(membership.slot, membership.version)
        return true
    }

    private mutating func sendMissed(_ missed: HistoryAnswer, to membership: Membership, _ hub: inout HubContext) {
        let (channel, slot, version) = (membership.channel, membership.slot, membership.version)
        guard let kept = channel.history else { return }
        for message in missed.messages {
            // Its own messages are skipped if it did not want an echo when they were sent.
            if !membership.echoesToSelf, let sender = message.sender?.member, sender == missed.former { continue }
            if let id = message.databaseID, channel.replays.receivers(of: id)?.contains(slot) == true { continue }
            sent[slot, default: 0] += message.bytes
            guard hub.wantsMessage(message.broadcast, membership),
                let frame = kept.replayFrame(message, version, in: channel)
            else { continue }
            membership.movePosition { $0.history = message.id.text }
            hub.sendBehindPosition(frame, to: membership, .kept)
        }
        // Clients that know of IDs read the gap in the reply. A `system` message with an error would end the channel in
        // the Python client.
        if missed.gap != nil, membership.history?.request.after == nil {
            hub.sendSystemMessage(
                membership, extension: "broadcast", ok: true,
                message: "Messages that were sent while you were away are missing: load what you show again.")
        }
    }

    /// Removes a member from its channel's history. A member that left on purpose does not come back.
    func removeMember(_ membership: Membership, _ end: MembershipEnd, _ hub: inout HubContext) {
        let channel = membership.channel
        guard let member = membership.history, !member.isOff, let kept = channel.history else { return }
        if let index = member.index, let moved = kept.audience.remove(at: index, membership.version) {
            hub.member(moved, of: channel)?.history?.index = index
        }
        // A member that may not read is owed nothing.
        let isOwed = member.isAnswered || membership.grants?.read == nil || membership.mayRead(.broadcast)
        if membership.connection.reader == nil {
            store.endSession(
                member.session, in: channel.key, lost: end != .left && isOwed,
                goneAt: end == .unloaded ? membership.connection.lastRef : nil, at: hub.now)
        }
        kept.memberCount -= 1
        guard kept.memberCount == 0 else { return }
        store.detachLoop(hub.loop, from: channel.key, at: hub.now)
        if hub.hasPeers { hub.sendRelay(.keeping(channel.key)) }
        channel.history = nil
    }

    // MARK: Messages

    /// Keeps a message that this hub sends first, if its channel has a history.
    ///
    /// - Parameter except: the sender, if it wants no echo.
    func keepBroadcast(
        _ message: BroadcastMessage, to key: ChannelKey, in channel: LocalChannel?, except: Slot?,
        _ hub: inout HubContext
    ) {
        guard store.isUsed else { return }
        let sender = channel.flatMap { channel in
            except.flatMap { slot in
                hub.member(slot, of: channel).map { MessageSender(member: $0.member, slot: slot) }
            }
        }
        store.append(message, to: key, sender: sender, at: hub.now)
    }

    /// Keeps a message sent by SQL. Every loop receives it; the first one counts.
    func keepBroadcast(_ message: DatabaseBroadcast, _ hub: inout HubContext) {
        guard store.isUsed else { return }
        store.append(message.broadcast, to: message.key, databaseID: message.id, at: hub.now)
    }

    /// Returns the messages to pass on to members with history, one at a time, by `passOn`.
    func news(in channel: LocalChannel, _ hub: inout HubContext) -> [KeptMessage] {
        channel.history == nil ? [] : store.news(for: hub.loop, in: channel.key, at: hub.now)
    }

    /// Passes the next message on.
    ///
    /// - Parameters:
    ///   - spared: members to whom the message was replayed.
    func passOn(
        _ message: KeptMessage, in channel: LocalChannel, sparing spared: Set<Slot>?, _ hub: inout HubContext
    ) {
        guard let kept = channel.history else { return }
        kept.markShown(message)
        let audience = spared.map { kept.audience.without($0) } ?? kept.audience
        guard !audience.isEmpty else { return }
        let meta = HistoryMeta(id: message.id, isReplay: false)
        channel.traffic.countBroadcast(message.broadcast, receivers: audience.count, at: hub.now)
        let except = message.sender.flatMap { hub.slot(of: $0, in: channel) }
        let id = meta.id.text
        audience.forEachReader { hub.member($0, of: channel)?.movePosition { $0.history = id } }
        audience.forEachVersion { version, slots in
            guard let frame = message.broadcast.frame(version, with: meta, in: channel) else { return }
            let slots = version.eventFormat == nil ? slots : hub.readers(of: message.broadcast, among: slots)
            if !slots.isEmpty {
                hub.fanOutFrame(frame, version, to: slots, except: except, .kept, isBehindPosition: true)
            }
        }
    }

    // MARK: Time

    /// Call once a second.
    mutating func sweepChannels(_ channels: [ChannelKey: LocalChannel], at now: HubTime) {
        store.removeExpired(at: now)
        guard !sent.isEmpty else { return }
        sent.removeAll(keepingCapacity: true)
        for channel in channels.values { channel.history?.forgetFrames() }
    }
}

/// One loop's part in a channel whose messages are kept.
final class ChannelHistory {
    /// The position up to which messages were passed on here.
    private(set) var shown: Int
    /// The same position as clients know it.
    private(set) var shownID: HistoryID
    /// Members that asked for history and hear the channel's broadcasts. They are not in `LocalChannel.members`.
    var audience = Audience()
    /// Includes members whose join is not answered yet.
    var memberCount = 0
    /// Frames of messages that are sent again, shared by all clients that come back at the same time; emptied every
    /// second.
    private var frames: [FrameKey: Frame] = [:]

    private struct FrameKey: Hashable {
        let position: Int
        let version: ProtocolVersion
    }

    init(shown: Int, id: HistoryID) {
        self.shown = shown
        shownID = id
    }

    func markShown(_ message: KeptMessage) {
        shown = message.position
        shownID = message.id
    }

    /// Returns a kept message's frame for sending it again; nil if the version cannot carry it.
    func replayFrame(_ message: KeptMessage, _ version: ProtocolVersion, in channel: LocalChannel) -> Frame? {
        let key = FrameKey(position: message.position, version: version)
        if let frame = frames[key] { return frame }
        let meta = HistoryMeta(id: message.id, isReplay: true)
        let frame = message.broadcast.frame(version, with: meta, in: channel)
        frames[key] = frame
        return frame
    }

    func forgetFrames() {
        if !frames.isEmpty { frames = [:] }
    }
}

/// One member's part in the history of its channel.
final class MemberHistory {
    fileprivate(set) var request: HistoryRequest
    /// Live members, asked for a sign of life, that may be dead sockets of the same client. Nil once that is decided.
    var doubts: [ClientTrace]?
    /// The hub keeps nothing: the member is served like any other, and told so.
    let isOff: Bool
    /// The position in the audience; nil before the member is let in.
    var index: Int32?
    /// Replaced when the member's token changes.
    var session: HistorySession
    fileprivate(set) var isAnswered = false

    init(request: HistoryRequest, session: HistorySession, isOff: Bool) {
        self.request = request
        self.session = session
        self.isOff = isOff
    }

    var isOwedAnAnswer: Bool { !isOff && !isAnswered }

    /// Ends the wait for sockets that have answered, or have had `longest` milliseconds to answer.
    func endDoubts(at now: HubTime, longest: Int64) {
        guard let doubts else { return }
        let isOver = now.monotonic - session.trace.began >= longest
        if isOver || doubts.allSatisfy({ $0.isDecided(for: session.trace) }) { self.doubts = nil }
    }
}
