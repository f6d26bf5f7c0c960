import Streams
import Wire

/// Channels of streams (`realtime:stream:NAME`): members are sent a stream's contents and news, and write to it if they
/// may.
///
/// A watcher is an offset. Its first frame has everything there is; later ones come at most every
/// `config.stream.every_ms`, each with all that was appended meanwhile; a watcher without room is skipped until it has
/// some. So a frame is made once for all watchers at the same offset, nothing waits in a queue, and no frame has a byte
/// beyond the end that a cancel fixed.
struct StreamChannels {
    /// Nil if the hub serves no streams: their topics are then ordinary channels.
    let service: (any StreamService)?
    /// Whether a socket has room for another frame now.
    var hasRoom: (Slot) -> Bool = { _ in true }
    /// Has `Hub.roomBecameFree` called once the socket has taken nearly everything it was sent.
    var awaitRoom: (Slot) -> Void = { _ in }
    /// Writes that were requested and not answered yet.
    private var asked: [Int: (membership: Membership, ref: JSON)] = [:]
    /// Members that came back, until it is known what other hubs have of their streams.
    private var returning: [Int: Membership] = [:]

    init(service: (any StreamService)?) {
        self.service = service
    }

    private struct Place: Hashable {
        let id: StreamID?
        let offset: Int
        /// The status as last told; nil if none was.
        let wasStalled: Bool?
        let version: ProtocolVersion
    }

    // MARK: Joining and leaving

    /// Returns the reason why a stream's channel cannot be joined, if any.
    func refusal(of config: JoinConfig, topic: String) -> Refusal? {
        guard service != nil, ChannelStream.isOne(topic) else { return nil }
        if !config.isPrivate { return .stream(.isPublic) }
        return ChannelStream.name(of: topic) == nil ? .stream(.name) : nil
    }

    /// Marks a channel as a stream's, if it is one. Called when a client joins it, because the messages of members
    /// whose joins are not answered yet already have their special meaning.
    func prepareChannel(_ channel: LocalChannel) {
        guard service != nil, channel.stream == nil, channel.key.isPrivate else { return }
        channel.stream = ChannelStream.name(of: channel.key.topic).map { ChannelStream($0) }
    }

    /// Adds a member whose join is answered.
    mutating func addMember(_ membership: Membership, _ hub: inout HubContext) {
        let channel = membership.channel
        guard let stream = channel.stream, membership.mayRead(.broadcast), membership.streamPlace != nil else { return }
        if stream.watchers.isEmpty { stream.buffer = service?.watchStream(stream.name, by: hub.loop) }
        if stream.watchers.updateValue(membership, forKey: membership.slot) == nil { countWatcher(membership, 1, &hub) }
        if service?.isShared == true, membership.streamPlace?.id != nil {
            // It may have been at another hub, whose part of the stream may not have arrived here yet.
            let number = hub.nextSerial()
            returning[number] = membership
            membership.streamPlace?.waits = true
            return hub.actions.append(.stream(number, stream.name, .touch))
        }
        startWatching(membership, isKnown: true, &hub)
    }

    /// - Parameter isKnown: whether it is known what other hubs have of the stream.
    private mutating func startWatching(_ membership: Membership, isKnown: Bool, _ hub: inout HubContext) {
        let channel = membership.channel
        if isKnown, channel.stream?.buffer == nil, let id = membership.streamPlace?.id {
            // Otherwise it would wait for the rest of a stream that is gone.
            tellGone(id, to: [membership], in: channel, &hub)
        }
        sendNews(to: [membership], in: channel, &hub)
    }

    /// Continues with a returning member once other hubs' part of the stream is here, or cannot be obtained.
    private mutating func completeReturn(_ membership: Membership, _ answer: StreamAnswer, _ hub: inout HubContext) {
        guard let stream = membership.channel.stream, stream.watchers[membership.slot] === membership else { return }
        if let buffer = service?.buffer(of: stream.name) { stream.buffer = buffer }
        membership.streamPlace?.waits = false
        if case .refused(.unavailable) = answer {
            startWatching(membership, isKnown: false, &hub)
        } else {
            startWatching(membership, isKnown: true, &hub)
        }
    }

    mutating func removeMember(_ membership: Membership, _ hub: inout HubContext) {
        guard let stream = membership.channel.stream else { return }
        if membership.holdsStream {
            membership.holdsStream = false
            hub.actions.append(.stream(nil, stream.name, .release(hold(of: membership), isFault: true)))
        }
        stopShowing(to: membership, &hub)
    }

    /// Stops sending a member news of its stream.
    func stopShowing(to membership: Membership, _ hub: inout HubContext) {
        guard let stream = membership.channel.stream, stream.watchers.removeValue(forKey: membership.slot) != nil
        else { return }
        // Otherwise room on its socket would bring the news it was waiting for.
        membership.streamPlace?.waits = false
        countWatcher(membership, -1, &hub)
        guard stream.watchers.isEmpty else { return }
        stream.buffer = nil
        service?.unwatchStream(stream.name, by: hub.loop)
    }

    private func countWatcher(_ membership: Membership, _ change: Int, _ hub: inout HubContext) {
        if membership.connection.reader == nil {
            hub.counters.streamWatchers.sockets += change
        } else {
            hub.counters.streamWatchers.readers += change
        }
    }

    /// Makes a member that writes one generation after another the producer of each.
    private func keepHold(of snapshot: StreamSnapshot, _ membership: Membership, _ hub: inout HubContext) {
        defer { membership.heldGeneration = snapshot.id }
        guard membership.holdsStream, let held = membership.heldGeneration, held != snapshot.id,
            snapshot.status.ending == nil
        else { return }
        hub.actions.append(.stream(nil, snapshot.name, .hold(hold(of: membership))))
    }

    private func hold(of membership: Membership) -> StreamHold {
        StreamHold(loop: membership.member.loop, serial: membership.member.serial)
    }

    // MARK: News

    mutating func streamChanged(_ buffer: StreamBuffer, in channel: LocalChannel, _ hub: inout HubContext) {
        guard let stream = channel.stream, !stream.watchers.isEmpty else { return }
        if buffer.isGone {
            // Another stream of the same name may exist by now, which announces itself.
            if stream.buffer === buffer { tellGone(stream, in: channel, &hub) }
            let behind = stream.watchers.values.filter { $0.streamPlace?.rest === buffer }
            for membership in behind { membership.streamPlace?.rest = nil }
            sendNews(to: behind, in: channel, &hub)
            return
        }
        if let before = stream.buffer, before !== buffer, before.snapshot.status.ending != nil {
            keepRest(of: before, for: stream.watchers.values)
        }
        stream.buffer = buffer
        sendNews(to: Array(stream.watchers.values), in: channel, &hub)
    }

    /// Keeps the rest of a generation for members that have not been sent all of it; they get it before the next one.
    private func keepRest(of before: StreamBuffer, for members: some Sequence<Membership>) {
        let snapshot = before.snapshot
        for membership in members {
            guard let place = membership.streamPlace, place.rest == nil, place.id == before.id, place.lacks(snapshot)
            else { continue }
            membership.streamPlace?.rest = before
        }
    }

    private func tellGone(_ stream: ChannelStream, in channel: LocalChannel, _ hub: inout HubContext) {
        guard let id = stream.buffer?.id else { return }
        stream.buffer = nil
        tellGone(id, to: stream.watchers.values.filter { $0.streamPlace?.id == id }, in: channel, &hub)
    }

    private func tellGone(_ id: StreamID, to members: [Membership], in channel: LocalChannel, _ hub: inout HubContext) {
        var slots: [ProtocolVersion: [Slot]] = [:]
        for membership in members { slots[membership.version, default: []].append(membership.slot) }
        for (version, slots) in slots {
            guard let frame = StreamFrames.frame(StreamFrames.gonePayload(id), version, in: channel) else { continue }
            hub.fanOutFrame(frame, version, to: slots.sorted(), isBehindPosition: true)
        }
    }

    /// Sends news that was delayed (the duty `.stream`).
    mutating func sendDueNews(in channel: LocalChannel, _ hub: inout HubContext) {
        guard let stream = channel.stream else { return }
        sendNews(to: Array(stream.watchers.values), in: channel, &hub)
    }

    /// Continues with a member whose socket has room again.
    mutating func resumeWatcher(_ membership: Membership, _ hub: inout HubContext) {
        membership.streamPlace?.waits = false
        membership.streamPlace?.nextAt = .min
        sendNews(to: [membership], in: membership.channel, &hub)
    }

    private mutating func sendNews(to members: [Membership], in channel: LocalChannel, _ hub: inout HubContext) {
        guard members.contains(where: { $0.streamPlace?.rest != nil }) else {
            if let buffer = channel.stream?.buffer { sendNews(to: members, from: buffer, in: channel, &hub) }
            return
        }
        let (behind, others) = (
            members.filter { $0.streamPlace?.rest != nil }, members.filter { $0.streamPlace?.rest == nil }
        )
        for membership in behind {
            guard let rest = membership.streamPlace?.rest else { continue }
            sendNews(to: [membership], from: rest, in: channel, &hub)
            guard membership.streamPlace?.lacks(rest.snapshot) == false else { continue }
            membership.streamPlace?.rest = nil
            membership.streamPlace?.nextAt = .min
            sendNews(to: [membership], in: channel, &hub)
        }
        if let buffer = channel.stream?.buffer { sendNews(to: others, from: buffer, in: channel, &hub) }
    }

    private mutating func sendNews(
        to members: [Membership], from buffer: StreamBuffer, in channel: LocalChannel, _ hub: inout HubContext
    ) {
        let snapshot = buffer.snapshot
        let now = hub.now.monotonic
        var together: [Place: [Membership]] = [:]
        var due: Int64?
        for membership in members {
            guard let place = membership.streamPlace, !place.waits, place.lacks(snapshot) else { continue }
            // An end is never delayed.
            if place.nextAt > now, snapshot.status.ending == nil {
                due = min(due ?? .max, place.nextAt)
                continue
            }
            guard hasRoom(membership.slot) else {
                membership.streamPlace?.waits = true
                awaitRoom(membership.slot)
                continue
            }
            let isKnown = place.id == snapshot.id
            let key = Place(
                id: place.id, offset: isKnown ? place.offset : 0,
                wasStalled: isKnown ? place.status.map { $0 == .stalled } : nil, version: membership.version)
            together[key, default: []].append(membership)
        }
        for (place, members) in together { sendNews(to: members, at: place, buffer, snapshot, in: channel, &hub) }
        if let due { hub.scheduleDuty(.stream(channel.key), at: due) }
    }

    private func sendNews(
        to members: [Membership], at place: Place, _ buffer: StreamBuffer, _ snapshot: StreamSnapshot,
        in channel: LocalChannel, _ hub: inout HubContext
    ) {
        let known = place.wasStalled.map { $0 ? StreamStatus.stalled : .open }
        guard let news = StreamFrames.news(of: buffer, snapshot, from: place.offset, knowing: known),
            let frame = StreamFrames.frame(news.payload, place.version, in: channel)
        else { return }
        for membership in members {
            membership.movePosition { $0.stream = .init(id: snapshot.id.number, offset: news.end) }
        }
        hub.fanOutFrame(frame, place.version, to: members.map(\.slot).sorted(), isBehindPosition: true)
        for membership in members {
            guard var next = membership.streamPlace else { continue }
            next.id = snapshot.id
            next.offset = news.end
            next.status = news.status ?? known ?? .open
            next.nextAt = hub.now.monotonic + next.interval
            if news.status == nil {
                next.waits = true
                awaitRoom(membership.slot)
            }
            membership.streamPlace = next
        }
    }

    // MARK: Writing

    /// Requests a member's write to the stream. The member must have the right to it.
    mutating func performWrite(_ write: StreamWrite, _ ref: JSON, of membership: Membership, _ hub: inout HubContext) {
        guard let stream = membership.channel.stream else { return }
        let request: StreamRequest
        switch write {
        case .append(var append):
            append.bearer = StreamBearer(membership.claims)
            if !membership.holdsStream {
                membership.holdsStream = true
                hub.actions.append(.stream(nil, stream.name, .hold(hold(of: membership))))
            }
            request = .append(append)
        case .cancel(let generation): request = .cancel(generation, by: StreamBearer(membership.claims))
        }
        let id = hub.nextSerial()
        asked[id] = (membership, JSON(trusted: Array(ref.bytes)[...]))
        hub.actions.append(.stream(id, stream.name, request))
    }

    mutating func receiveAnswer(_ id: Int, _ answer: StreamAnswer, _ hub: inout HubContext) {
        if let membership = returning.removeValue(forKey: id) { return completeReturn(membership, answer, &hub) }
        guard let (membership, ref) = asked.removeValue(forKey: id), !membership.join.hasEnded else { return }
        if case .appended(let snapshot, _, _) = answer { keepHold(of: snapshot, membership, &hub) }
        switch answer {
        case .refused(let refusal):
            hub.refuseMessage(.broadcast, ref, of: membership, .stream(StreamProblem(refusal)))
        case .created(let snapshot), .existed(let snapshot), .appended(let snapshot, _, _), .done(let snapshot?):
            guard membership.acknowledges, !ref.isNull else { return }
            hub.reply(
                to: ref, of: membership, ok: true, response: JSONWriter.object { $0.writeMember("next", snapshot.end) })
        case .done(nil):
            guard membership.acknowledges, !ref.isNull else { return }
            hub.reply(to: ref, of: membership, ok: true)
        }
    }
}
