package import Wire

/// Connections that read events from an HTTP response: every subscription without a WebSocket.
///
/// A reader joins as other connections do and is in the same lists; it sends nothing, tracks nothing and is never
/// pinged. Its client states its position when it reconnects (`EventCursor`), so no session is kept for it. The
/// response begins when the outcome for each channel is known: until then the gateway holds the frames sent to the
/// reader.
extension Hub {
    /// Joins the channels. `Action.begin` or `Action.refuse` follows, perhaps at once.
    package func connectReader(
        _ request: EventRequest, as format: EventFormat, on slot: Slot, claims: Claims, isPage: Bool
    ) {
        connect(slot, version: .events(format), claims: claims, isCounted: false, isPage: isPage)
        guard let connection = connection(slot) else { return }
        connection.reader = EventReader(request, format)
        let cursor = request.lastID.flatMap { EventCursor($0) }
        let joins = request.channels.enumerated().map { index, channel in
            var config = channel.joinConfig(context.limits, cursor)
            config.readerIndex = index
            connection.reader?.addChannel(
                ChannelKey(topic: channel.key, isPrivate: config.isPrivate), at: config.position)
            return JoinRequest(topic: channel.key, ref: .null, joinRef: .null, config: config)
        }
        for request in joins { joinChannel(request, on: connection) }
    }

    /// Records the outcome for one of the channels that a reader asked for.
    func recordVerdict(_ verdict: EventReader.Verdict, on key: ChannelKey, of connection: Connection) {
        guard let reader = connection.reader, !reader.isOpen else { return }
        reader.recordVerdict(verdict, on: key.name)
        guard reader.isDecided else { return }
        reader.isOpen = true
        if let refusal = reader.refusal {
            actions.append(.refuse(connection.slot, refusal))
        } else {
            actions.append(.begin(connection.slot, reader.connectedFrame(retry: nextRetry())))
            if reader.lacksWhatPasses { endWhenFeedIsBack(connection, reader) }
        }
    }

    /// Ends the response when the feed is back. A reader never rejoins a channel by itself; its client reconnects and
    /// states its position.
    private func endWhenFeedIsBack(_ connection: Connection, _ reader: EventReader) {
        guard rows.isReady else {
            reader.awaitsFeed = true
            return
        }
        actions.append(.close(connection.slot, .normal, reason: "come back"))
    }

    /// Makes readers that lack row changes reconnect, now that the feed is back.
    func endWaitingReaders() {
        for connection in context.openConnections {
            guard let reader = connection.reader, reader.awaitsFeed else { continue }
            reader.awaitsFeed = false
            actions.append(.close(connection.slot, .normal, reason: "come back"))
        }
    }

    /// Returns the verdict on a channel that is being joined.
    func verdict(on membership: Membership, _ missed: HistoryAnswer?) -> EventReader.Verdict {
        var verdict = EventReader.Verdict()
        let hasReturned = membership.connection.reader?.hasReturned == true
        let broughtCursor = membership.recovery?.broughtCursor == true
        guard hasReturned || broughtCursor else { return verdict }
        var reasons: [String?] = []
        if let recovery = membership.recovery {
            reasons.append(broughtCursor ? recovery.reason : Self.unknownID)
        }
        if hasReturned, let history = membership.history {
            let isKnown = membership.returnsTo?.history != nil || history.isOff
            reasons.append(isKnown ? (history.isOff ? .off : missed?.gap)?.rawValue : Self.unknownID)
        }
        if hasReturned, membership.streamPlace != nil {
            reasons.append(membership.returnsTo?.stream == nil ? Self.unknownID : nil)
        }
        guard !reasons.isEmpty else { return verdict }
        verdict.reason = reasons.compactMap { $0 }.first
        verdict.isResumed = verdict.reason == nil
        return verdict
    }

    private static let unknownID = "The id does not say where you were in these channels: load what you show again."

    /// Returns a random delay in milliseconds, so that not all reconnect at once if many were cut off.
    private func nextRetry() -> Int { Int.random(in: 2000...5000, using: &context.random) }

    // MARK: Time

    /// Milliseconds between updates of the positions of readers to whom nothing was sent: what is kept for reconnecting
    /// clients is bounded.
    static let readerInterval: Int64 = 15_000

    /// Moves readers that have all row changes to the current cursor, even if no change was for them.
    func advanceReaders() {
        guard context.now.monotonic >= nextReaderAdvance else { return }
        nextReaderAdvance = context.now.monotonic + Self.readerInterval
        guard let passed = rows.progress.passed else { return }
        for connection in context.openConnections {
            guard let reader = connection.reader, reader.isOpen else { continue }
            for membership in connection.memberships where membership.rows?.groupIndex != nil {
                guard passed.serial > membership.rows?.reached ?? .max else { continue }
                membership.movePosition { $0.rows = passed.cursor }
            }
            context.sendPositionAlone(to: connection)
        }
    }

    // MARK: Ends

    /// Ends one of a reader's channels, and the response with the last one.
    func closeReaderChannel(_ membership: Membership, _ refusal: Refusal, _ end: MembershipEnd) {
        let connection = membership.connection
        guard let reader = connection.reader else { return }
        let wasJoined = membership.join.isJoined || membership.pending == nil
        removeMember(membership, end)
        guard reader.isOpen, wasJoined else {
            return recordVerdict(EventReader.Verdict(refusal: refusal), on: membership.channel.key, of: connection)
        }
        var event: StaticString = "closed"
        if case .tokenExpired = refusal { event = "token_expired" }
        actions.append(.send(membership.frames.push(event, payload: refusal.ending), to: connection.slot))
        if connection.memberships.isEmpty {
            actions.append(.close(connection.slot, .normal, reason: "no channels"))
        } else if refusal.passesWithTheDatabase {
            endWhenFeedIsBack(connection, reader)
        }
    }

    /// Returns the last frame to a reader before the hub stops: it tells the client to reconnect to the next hub.
    package func farewellFrame(to slot: Slot) -> Frame? {
        connection(slot)?.reader.flatMap { EventFrame.retry(nextRetry(), $0.format) }
    }
}

/// Positions of readers.
extension HubContext {
    /// Sends one frame to all receivers of a version; readers first get their position if the frame's kind has one.
    mutating func fanOutFrame(
        _ frame: Frame, _ version: ProtocolVersion, to slots: [Slot], except: Slot? = nil, _ kind: FrameKind = .message,
        isBehindPosition: Bool
    ) {
        if isBehindPosition, let format = version.eventFormat {
            for slot in slots where slot != except {
                if let connection = connection(slot) { sendPosition(to: connection, format) }
            }
        }
        actions.append(.fanOut(frame, to: slots, except: except, kind))
    }

    /// Sends a frame that was made to follow a position.
    mutating func sendBehindPosition(_ frame: Frame, to membership: Membership, _ kind: FrameKind) {
        if let format = membership.version.eventFormat { sendPosition(to: membership.connection, format) }
        sendFrame(frame, to: membership, kind)
    }

    private mutating func sendPosition(to connection: Connection, _ format: EventFormat) {
        guard let frame = EventFrame.position(nextPosition(of: connection), format) else { return }
        actions.append(.send(frame, to: connection.slot))
    }

    /// Sends a reader its position if that has changed.
    mutating func sendPositionAlone(to connection: Connection) {
        guard let reader = connection.reader, let position = nextPosition(of: connection) else { return }
        actions.append(.send(EventFrame.position(alone: position, reader.format), to: connection.slot))
    }

    private func nextPosition(of connection: Connection) -> String? {
        guard let reader = connection.reader, reader.hasMoved else { return nil }
        reader.hasMoved = false
        return EventCursor.text(reader.positions)
    }

    /// Whether a member wants a message that others in its channel get.
    func wantsMessage(_ message: BroadcastMessage, _ membership: Membership) -> Bool {
        guard let wanted = membership.connection.reader?.event else { return true }
        return message.event?.hasSameBytes(as: wanted) ?? false
    }

    /// Returns the readers that want a message: all of them, or those that asked for its event.
    func readers(of message: BroadcastMessage, among slots: [Slot]) -> [Slot] {
        guard slots.contains(where: { connection($0)?.reader?.event != nil }) else { return slots }
        let event = message.event
        return slots.filter { slot in
            guard let wanted = connection(slot)?.reader?.event else { return true }
            return event?.hasSameBytes(as: wanted) ?? false
        }
    }
}

extension Membership {
    /// Moves a reader's position: the reader is at it once it has received the next frame.
    func movePosition(_ change: (inout EventPosition) -> Void) {
        if let readerIndex { connection.reader?.movePosition(readerIndex, change) }
    }
}
