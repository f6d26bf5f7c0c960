import Wire

/// Broadcasts for those who drop off and come back (`config.broadcast.history`); the idea is in `HistoryBook`.
extension Hub {
    // MARK: Joining

    /// The member's part in the channel's history, where its join asks for one: from here on messages are kept.
    func history(
        _ config: JoinConfig, joinRef: JSON, claims: Claims, in channel: Channel, on connection: Connection,
        as member: MemberID, at now: HubTime
    ) -> MemberHistory? {
        guard let request = config.history else { return nil }
        let isOff = limits.historyMessages <= 0
        let kept = isOff ? nil : attachHistory(to: channel, request)
        kept?.memberCount += 1
        // Its socket has a lifeline from here on: it is pinged now and then, which proves what it has received.
        let session = HistorySession(
            key: HistoryKey(claims, presenceKey: config.presenceKey), member: member,
            trace: trace(of: claims, joinRef: joinRef, connection, at: now), at: kept?.shown ?? 0)
        let part = MemberHistory(request: request, session: session, isOff: isOff)
        guard !isOff else { return part }
        let doubts = history.enter(session, in: channel.key)
        // Who names an id says itself where it was.
        guard request.after == nil, !doubts.isEmpty else { return part }
        ask(doubts)
        part.doubts = doubts
        return part
    }

    /// A member's token changed. Whoever comes back for it brings the new one.
    func renewHistory(of membership: Membership) {
        guard let member = membership.history, !member.isOff else { return }
        let key = HistoryKey(
            membership.claims, presenceKey: membership.presence.givenKey)
        let old = member.session
        guard key != old.key else { return }
        let trace = ClientTrace(renewing: old.trace, at: latest, moment: book.moment())
        member.session = history.renew(old, key, trace, in: membership.channel.key)
    }

    /// Goes on with an arrival, as far as it can.
    func advanceArrival(of member: MemberHistory) {
        guard let doubts = member.doubts else { return }
        let isOver = latest.monotonic - member.session.trace.began >= Self.longestDoubt
        if isOver || doubts.allSatisfy({ $0.isDecided(for: member.session.trace) }) { member.doubts = nil }
    }

    private func attachHistory(to channel: Channel, _ request: HistoryRequest) -> ChannelHistory {
        // For members behind the first, too: the most that any of them asks for counts.
        let (name, position) = history.attach(loop, to: channel.key, request, chance: context.random.next(), at: latest)
        if let kept = channel.history { return kept }
        let kept = ChannelHistory(history: name, shown: position)
        channel.history = kept
        return kept
    }

    /// What a member that is about to be let in missed. Nil where it did not ask or may not hear broadcasts.
    func missedMessages(by membership: Membership) -> HistoryAnswer? {
        guard let member = membership.history, !member.isOff, !member.isAnswered, membership.mayRead(.broadcast)
        else { return nil }
        // The others first, so that this loop is at one position with all of its members.
        showNews(in: membership.channel)
        guard let kept = membership.channel.history else { return nil }
        let sent = historySent[membership.slot] ?? 0
        let arrival = HistoryArrival(
            session: member.session, firstProof: membership.connection.nextProof, after: member.request.after,
            seated: kept.shown,
            room: limits.historyBytesPerReturn - sent, isFresh: sent == 0)
        guard let answer = history.answer(arrival, in: membership.channel.key) else { return nil }
        member.isAnswered = true
        return answer
    }

    /// A join's response, with what came of its history where it asked for one.
    static func response(
        _ response: [UInt8], _ membership: Membership, _ missed: HistoryAnswer?
    ) -> [UInt8] {
        guard let member = membership.history, member.isOff || missed != nil else { return response }
        var out = Array(response.dropLast())
        out += ",\"history\":".utf8
        if let missed, let kept = membership.channel.history {
            out += missed.json(kept.history)
        } else {
            out += "{\"complete\":false,\"reason\":".utf8
            JSONString.encode(HistoryGap.off.rawValue, into: &out)
            out.append(UInt8(ascii: "}"))
        }
        out.append(UInt8(ascii: "}"))
        return out
    }

    /// Seats a member that may hear the channel's broadcasts: what it missed comes first.
    func takeMemberSeat(_ membership: Membership, after missed: HistoryAnswer?) {
        let (slot, version) = (membership.slot, membership.version)
        guard let member = membership.history, !member.isOff, let kept = membership.channel.history else {
            membership.memberSeat = membership.channel.members.add(slot, version)
            return
        }
        if let missed { send(missed, to: membership) }
        member.seat = kept.audience.add(slot, version)
    }

    private func send(_ missed: HistoryAnswer, to membership: Membership) {
        let (channel, slot, version) = (membership.channel, membership.slot, membership.version)
        guard let kept = channel.history else { return }
        for message in missed.messages {
            // Its own it knows, if it did not want them back when they were sent.
            if !membership.echoesToSelf, let sender = message.sender, sender == missed.former { continue }
            if let id = message.databaseID, channel.replayed[id]?.contains(slot) == true { continue }
            historySent[slot, default: 0] += message.bytes
            if let frame = kept.replay(message, version, in: channel) {
                actions.append(.send(frame, to: slot, .kept))
            }
        }
        // Clients that know of ids read it in the reply. A `system` message that is an error would end the channel in the
        // Python client.
        if missed.gap != nil, membership.history?.request.after == nil {
            system(
                membership, extension: "broadcast", ok: true,
                message: "Messages that were sent while you were away are missing: load what you show again.")
        }
    }

    /// Takes a member out of its channel's history.
    func endHistory(of membership: Membership, isLeave: Bool) {
        let channel = membership.channel
        guard let member = membership.history, !member.isOff, let kept = channel.history else { return }
        if let seat = member.seat, let moved = kept.audience.remove(at: seat, membership.version) {
            connection(moved)?.memberships[channel]?.history?.seat = seat
        }
        // Who may not read it is owed nothing.
        let isOwed = member.isAnswered || membership.pass?.read == nil || membership.mayRead(.broadcast)
        history.end(member.session, in: channel.key, lost: !isLeave && isOwed, at: latest)
        kept.memberCount -= 1
        guard kept.memberCount == 0 else { return }
        history.detach(loop, from: channel.key, at: latest)
        channel.history = nil
    }

    // MARK: Messages

    /// Notes a message that is sent here first, if its channel is kept.
    ///
    /// - Parameter except: who sent it and does not want it back.
    func keep(_ message: Broadcast, to key: ChannelKey, in channel: Channel?, except: Slot?) {
        guard history.isUsed else { return }
        let sender = channel.flatMap { channel in except.flatMap { connection($0)?.memberships[channel]?.member } }
        history.append(message, to: key, sender: sender, at: latest)
    }

    /// The same for one that SQL sent. Every loop hears it; the first one counts.
    func keep(_ message: DatabaseBroadcast) {
        guard history.isUsed else { return }
        history.append(message.broadcast, to: message.key, databaseID: message.id, at: latest)
    }

    /// Passes on to the members with history all that they have not got yet.
    ///
    /// - Parameter except: who sent the newest message and does not want it back. Messages of this loop are passed on as
    ///   they come, so no other can be theirs.
    func showNews(in channel: Channel, except: Slot? = nil) {
        guard let kept = channel.history else { return }
        for message in history.news(for: loop, in: channel.key, at: latest) {
            kept.shown = message.position
            var audience = kept.audience
            if let id = message.databaseID {
                let row = DatabaseBroadcast(key: channel.key, id: id, broadcast: message.broadcast)
                keepForReplays(row, in: channel, withHistory: true)
                if let slots = channel.replayed[id] { audience = audience.without(slots) }
            }
            let meta = HistoryMeta(
                id: HistoryID(history: kept.history, position: message.position), isReplay: false)
            if !audience.isEmpty { channel.traffic.count(message.broadcast, receivers: audience.count, at: latest) }
            for version in [ProtocolVersion.v1, .v2] where !audience[version].isEmpty {
                guard let frame = message.broadcast.frame(version, with: meta, in: channel) else { continue }
                let isOwn = message.sender?.loop == loop
                actions.append(.fanOut(frame, to: audience[version], except: isOwn ? except : nil, .kept))
            }
        }
    }

    // MARK: Time

    /// To be called once a second.
    func ageHistory(at now: HubTime) {
        history.sweep(at: now)
        guard !historySent.isEmpty else { return }
        historySent.removeAll(keepingCapacity: true)
        for channel in channels.values { channel.history?.forgetFrames() }
    }
}
