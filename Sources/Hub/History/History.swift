import Wire

/// Broadcasts for those who drop off and come back (`config.broadcast.history`); the idea is in `HistoryStore`.
struct History {
    /// What is kept, for all loops.
    let store: HistoryStore
    /// Bytes of kept messages that a socket was sent in this second.
    private var sent: [Slot: Int] = [:]

    init(store: HistoryStore) {
        self.store = store
    }

    // MARK: Joining

    /// The member's part in the channel's history: from here on messages are kept.
    ///
    /// - Parameters:
    ///   - membership: joins, and is not in the channel yet.
    ///   - trace: what the join tells of its client. The socket is pinged now and then from here on, whose pongs say what it
    ///     has received.
    func enter(
        _ membership: Membership, _ request: HistoryRequest, _ trace: ClientTrace, _ hub: inout HubContext
    ) -> MemberHistory {
        let channel = membership.channel
        let isOff = hub.limits.historyMessages <= 0
        let kept = isOff ? nil : attach(channel, request, &hub)
        kept?.memberCount += 1
        let session = HistorySession(
            key: HistoryKey(membership.claims, presenceKey: membership.presence.givenKey), member: membership.member,
            trace: trace, at: kept?.shown ?? 0)
        let part = MemberHistory(request: request, session: session, isOff: isOff)
        guard !isOff else { return part }
        guard membership.connection.reader == nil else {
            // It says itself where it is, or begins now.
            if let kept, part.request.after == nil { part.request.after = kept.shownID.text }
            return part
        }
        let doubts = store.enter(session, in: channel.key)
        // Who names an id says itself where it was.
        guard request.after == nil, !doubts.isEmpty else { return part }
        hub.ask(doubts)
        part.doubts = doubts
        return part
    }

    private func attach(_ channel: LocalChannel, _ request: HistoryRequest, _ hub: inout HubContext) -> ChannelHistory {
        // For members behind the first, too: the most that any of them asks for counts.
        let (position, id) = store.attach(
            hub.loop, to: channel.key, request, chance: hub.random.next(), at: hub.now)
        if hub.hasPeers { hub.relay(.keeping(channel.key)) }
        if let kept = channel.history { return kept }
        let kept = ChannelHistory(shown: position, id: id)
        channel.history = kept
        return kept
    }

    /// A member's token changed. Whoever comes back for it brings the new one.
    ///
    /// - Parameter trace: what is known of its client from here on, by what was known before.
    func renew(_ membership: Membership, _ trace: (ClientTrace) -> ClientTrace) {
        guard let member = membership.history, !member.isOff else { return }
        let key = HistoryKey(membership.claims, presenceKey: membership.presence.givenKey)
        let old = member.session
        guard key != old.key else { return }
        member.session = store.renew(old, key, trace(old.trace), in: membership.channel.key)
    }

    /// What a member that is about to be let in missed. Nil where it did not ask or may not hear broadcasts. The others of
    /// its channel have been passed on all that is new, so that this loop is at one position with all of its members.
    func answer(_ membership: Membership, _ hub: inout HubContext) -> HistoryAnswer? {
        guard let member = membership.history, member.isOwedAnAnswer, membership.mayRead(.broadcast),
            let kept = membership.channel.history
        else { return nil }
        let sent = sent[membership.slot] ?? 0
        let arrival = HistoryArrival(
            session: member.session, firstPing: membership.connection.nextPing, after: member.request.after,
            liveFrom: kept.shown, room: hub.limits.historyBytesPerReturn - sent, isFresh: sent == 0,
            hasSession: membership.connection.reader == nil)
        guard let answer = store.answer(arrival, in: membership.channel.key) else { return nil }
        member.isAnswered = true
        return answer
    }

    /// A join's response, with what came of its history where it asked for one.
    static func response(_ response: [UInt8], _ membership: Membership, _ missed: HistoryAnswer?) -> [UInt8] {
        guard let member = membership.history, member.isOff || missed != nil else { return response }
        var out = Array(response.dropLast())
        out += ",\"history\":".utf8
        if let missed {
            out += missed.json
        } else {
            out += JSONWriter.object { HistoryGap.off.write(to: &$0) }
        }
        out.append(UInt8(ascii: "}"))
        return out
    }

    /// Lets a member hear the channel's broadcasts from here on: what it missed comes first.
    ///
    /// - Returns: false where it has no part in the history, and so is one of `LocalChannel.members`.
    mutating func letHear(_ membership: Membership, after missed: HistoryAnswer?, _ hub: inout HubContext) -> Bool {
        guard let member = membership.history, !member.isOff, let kept = membership.channel.history else {
            return false
        }
        if let missed { send(missed, to: membership, &hub) }
        membership.moves { $0.history = kept.shownID.text }
        hub.sendPositionAlone(to: membership.connection)
        member.index = kept.audience.add(membership.slot, membership.version)
        return true
    }

    private mutating func send(_ missed: HistoryAnswer, to membership: Membership, _ hub: inout HubContext) {
        let (channel, slot, version) = (membership.channel, membership.slot, membership.version)
        guard let kept = channel.history else { return }
        for message in missed.messages {
            // Its own it knows, if it did not want them back when they were sent.
            if !membership.echoesToSelf, let sender = message.sender?.member, sender == missed.former { continue }
            if let id = message.databaseID, channel.replays.receivers(of: id)?.contains(slot) == true { continue }
            sent[slot, default: 0] += message.bytes
            guard hub.wants(message.broadcast, membership), let frame = kept.replay(message, version, in: channel)
            else { continue }
            membership.moves { $0.history = message.id.text }
            hub.sendBehindPosition(frame, to: membership, .kept)
        }
        // Clients that know of ids read it in the reply. A `system` message that is an error would end the channel in the
        // Python client.
        if missed.gap != nil, membership.history?.request.after == nil {
            hub.system(
                membership, extension: "broadcast", ok: true,
                message: "Messages that were sent while you were away are missing: load what you show again.")
        }
    }

    /// Takes a member out of its channel's history. One that left does not come back for anything.
    func leave(_ membership: Membership, _ end: MembershipEnd, _ hub: inout HubContext) {
        let channel = membership.channel
        guard let member = membership.history, !member.isOff, let kept = channel.history else { return }
        if let index = member.index, let moved = kept.audience.remove(at: index, membership.version) {
            hub.member(moved, of: channel)?.history?.index = index
        }
        // Who may not read it is owed nothing.
        let isOwed = member.isAnswered || membership.grants?.read == nil || membership.mayRead(.broadcast)
        if membership.connection.reader == nil {
            store.end(
                member.session, in: channel.key, lost: end != .left && isOwed,
                goneAt: end == .unloaded ? membership.connection.lastRef : nil, at: hub.now)
        }
        kept.memberCount -= 1
        guard kept.memberCount == 0 else { return }
        store.detach(hub.loop, from: channel.key, at: hub.now)
        if hub.hasPeers { hub.relay(.keeping(channel.key)) }
        channel.history = nil
    }

    // MARK: Messages

    /// Notes a message that is sent here first, if its channel is kept.
    ///
    /// - Parameter except: who sent it and does not want it back.
    func keep(
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

    /// The same for one that SQL sent. Every loop hears it; the first one counts.
    func keep(_ message: DatabaseBroadcast, _ hub: inout HubContext) {
        guard store.isUsed else { return }
        store.append(message.broadcast, to: message.key, databaseID: message.id, at: hub.now)
    }

    /// What is to be passed on to the channel's members with history, one after the other, by `passOn`.
    func news(in channel: LocalChannel, _ hub: inout HubContext) -> [KeptMessage] {
        channel.history == nil ? [] : store.news(for: hub.loop, in: channel.key, at: hub.now)
    }

    /// Passes the next message on.
    ///
    /// - Parameters:
    ///   - spared: who was replayed it.
    func passOn(
        _ message: KeptMessage, in channel: LocalChannel, sparing spared: Set<Slot>?, _ hub: inout HubContext
    ) {
        guard let kept = channel.history else { return }
        kept.isShown(message)
        let audience = spared.map { kept.audience.without($0) } ?? kept.audience
        guard !audience.isEmpty else { return }
        let meta = HistoryMeta(id: message.id, isReplay: false)
        channel.traffic.count(message.broadcast, receivers: audience.count, at: hub.now)
        let except = message.sender.flatMap { hub.slot(of: $0, in: channel) }
        let id = meta.id.text
        audience.forEachReader { hub.member($0, of: channel)?.moves { $0.history = id } }
        audience.forEachVersion { version, slots in
            guard let frame = message.broadcast.frame(version, with: meta, in: channel) else { return }
            let slots = version.eventFormat == nil ? slots : hub.readers(of: message.broadcast, among: slots)
            if !slots.isEmpty {
                hub.pass(frame, version, to: slots, except: except, .kept, isBehindPosition: true)
            }
        }
    }

    // MARK: Time

    /// To be called once a second.
    mutating func tick(_ channels: [ChannelKey: LocalChannel], at now: HubTime) {
        store.sweep(at: now)
        guard !sent.isEmpty else { return }
        sent.removeAll(keepingCapacity: true)
        for channel in channels.values { channel.history?.forgetFrames() }
    }
}

/// One loop's part in a channel whose messages are kept.
final class ChannelHistory {
    /// All up to it was passed on here.
    private(set) var shown: Int
    /// The same as clients know it.
    private(set) var shownID: HistoryID
    /// Who asked for history and hears the channel's broadcasts. They are not in `LocalChannel.members`.
    var audience = Audience()
    /// Those whose join is not answered yet included.
    var memberCount = 0
    /// Of messages that are sent again, for all who come back at the same time; emptied every second.
    private var frames: [FrameKey: Frame] = [:]

    private struct FrameKey: Hashable {
        let position: Int
        let version: ProtocolVersion
    }

    init(shown: Int, id: HistoryID) {
        self.shown = shown
        shownID = id
    }

    func isShown(_ message: KeptMessage) {
        shown = message.position
        shownID = message.id
    }

    /// A kept message as it is sent again. Nil where the version has no form for it.
    func replay(_ message: KeptMessage, _ version: ProtocolVersion, in channel: LocalChannel) -> Frame? {
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
    /// Live members that may be dead ones of the same client, and are asked. Nil once that is decided.
    var doubts: [ClientTrace]?
    /// The hub keeps nothing: the member is served like any other, and told.
    let isOff: Bool
    /// Its position in the audience; nil before it is let in.
    var index: Int32?
    /// Another one where its token is changed.
    var session: HistorySession
    fileprivate(set) var isAnswered = false

    init(request: HistoryRequest, session: HistorySession, isOff: Bool) {
        self.request = request
        self.session = session
        self.isOff = isOff
    }

    var isOwedAnAnswer: Bool { !isOff && !isAnswered }

    /// Gives up waiting for sockets that answered, or had `longest` milliseconds to answer.
    func decide(at now: HubTime, longest: Int64) {
        guard let doubts else { return }
        let isOver = now.monotonic - session.trace.began >= longest
        if isOver || doubts.allSatisfy({ $0.isDecided(for: session.trace) }) { self.doubts = nil }
    }
}
