import Wire

extension JSON {
    /// Whether all members of an object are such.
    func hasOnlyMembers(where isExpected: (Member) -> Bool) -> Bool {
        var hasOnly = true
        forEachMember { if hasOnly, !isExpected($0) { hasOnly = false } }
        return hasOnly
    }
}

extension Broadcast {
    /// What a client says about its own doings is short. Longer messages are not looked into.
    static let mostSignBytes = 4096

    /// The payload of a short message of this event, if it is a JSON object.
    func payload(ofEvent name: String) -> JSON? {
        let payload: JSON?
        switch self {
        case .text(let whole):
            guard whole.count <= Self.mostSignBytes else { return nil }
            let message = JSON(trusted: whole[...])
            guard message["event"]?.string?.hasSameBytes(as: name) == true else { return nil }
            payload = message["payload"]
        case .user(let user):
            guard user.encoding == .json, user.payload.count <= Self.mostSignBytes,
                user.event.hasSameBytes(as: name)
            else { return nil }
            do { payload = try JSON(parsing: user.payload) } catch { return nil }
        }
        return payload?.kind == .object ? payload : nil
    }
}

/// Messages from one to all (wire-protocol A7).
extension Hub {
    func broadcast(_ frame: ClientFrame, of membership: Membership) {
        let message: Broadcast
        switch frame.body {
        case .userBroadcast(let user):
            guard user.payload.count <= limits.payloadBytes else {
                return context.refuse(frame.ref, of: membership, .over(.payloadBytes, limits.payloadBytes))
            }
            message = .user(user)
        case .json(let payload):
            guard payload.bytes.count <= limits.payloadBytes else {
                return context.refuse(frame.ref, of: membership, .over(.payloadBytes, limits.payloadBytes))
            }
            guard payload.kind == .object else {
                return context.refuse(frame.ref, of: membership, .payloadNotAnObject)
            }
            message = .text(Array(payload.bytes))
        }
        guard !ActivitySummary.isReserved(message, topic: membership.channel.key.topic) else {
            return context.refuse(frame.ref, of: membership, .summaryReserved)
        }
        guard !presence.consumesAppState(message, ref: frame.ref, of: membership, &context) else { return }
        write(.broadcast(message), ref: frame.ref, of: membership)
    }

    /// A message that came by HTTP. Clients send theirs so while they are not joined, so it may be about typing.
    ///
    /// - Parameter user: the claim `sub` of the sender's token.
    package func publish(_ message: Broadcast, to key: ChannelKey, by user: String? = nil) {
        if let signal = typing.signal(in: message) {
            let channel = channel(key)
            typing.take(signal, of: user, in: channel, &context)
            return discardIfIdle(channel)
        }
        if let channel = channels[key] {
            deliver(message, in: channel, except: nil)
        } else {
            history.keep(message, to: key, in: nil, except: nil, &context)
        }
        actions.append(.relay(.broadcast(key, message)))
    }

    /// Delivers a message that is sent here first; the other loops are relayed it.
    func deliver(_ message: Broadcast, in channel: Channel, except: Slot?) {
        history.keep(message, to: channel.key, in: channel, except: except, &context)
        context.deliver(message, in: channel, to: channel.members, except: except)
        passOnNews(in: channel, except: except)
    }

    /// Passes on to the channel's members with history all that they have not got yet.
    ///
    /// - Parameter except: who sent the newest message and does not want it back.
    func passOnNews(in channel: Channel, except: Slot? = nil) {
        for message in history.news(in: channel, &context) {
            var spared: Set<Slot>?
            if let id = message.databaseID {
                let row = DatabaseBroadcast(key: channel.key, id: id, broadcast: message.broadcast)
                authorization.keepForReplays(row, in: channel, withHistory: true, limits)
                spared = channel.replays.receivers(of: id)
            }
            history.passOn(message, in: channel, sparing: spared, except: except, &context)
        }
    }

    /// What a member that is about to hear broadcasts missed of them; nil where it did not ask for history.
    func missedMessages(by membership: Membership) -> HistoryAnswer? {
        guard membership.history?.isOwedAnAnswer == true, membership.mayRead(.broadcast) else { return nil }
        // The others first, so that this loop is at one position with all of its members.
        passOnNews(in: membership.channel)
        return history.answer(membership, &context)
    }

    /// Lets a member hear the channel's broadcasts: what it missed comes first.
    func letHear(_ membership: Membership, after missed: HistoryAnswer?) {
        if history.letHear(membership, after: missed, &context) { return }
        membership.memberIndex = membership.channel.members.add(membership.slot, membership.version)
    }

    /// A member's token changed: whoever comes back for it brings the new one.
    func renewHistory(of membership: Membership) {
        history.renew(membership) { ClientTrace(renewing: $0, at: latest, moment: catchUp.sessions.moment()) }
    }

    /// Tells a member a state of a channel as a whole, because it was spared steps to it.
    package func show(_ state: ChannelState, to slot: Slot) {
        switch state {
        case .presence(let key):
            if let membership = member(slot, of: key) { presence.showAgain(to: membership, &context) }
        case .typing(let key):
            guard let membership = member(slot, of: key), membership.hearsBroadcasts else { return }
            typing.show(to: membership, &context)
        }
    }

    private func member(_ slot: Slot, of key: ChannelKey) -> Membership? {
        channels[key].flatMap { context.member(slot, of: $0) }
    }

    /// Takes over what another loop's hub did.
    package func apply(_ relay: Relay) {
        switch relay {
        case .broadcast(let key, let message):
            guard let channel = channels[key] else { return }
            context.deliver(message, in: channel, to: channel.members, except: nil)
            passOnNews(in: channel)
        case .presence(let key, let diff):
            let channel = channel(key)
            presence.apply(diff, to: channel, &context)
            discardIfIdle(channel)
        case .typing(let key, let relay):
            let channel = channel(key)
            typing.apply(relay, to: channel, &context)
            discardIfIdle(channel)
        }
    }
}

extension Broadcast {
    /// Nil where a version has no form for it: raw bytes in version 1; in version 2 raw bytes under a name that is longer
    /// than a binary frame can carry.
    func frame(_ version: ProtocolVersion, in channel: Channel) -> Frame? {
        let frames = channel.frames(version)
        switch self {
        case .text(let payload): return frames.push("broadcast", payload: payload)
        case .user(let user):
            if version == .v2, let frame = ServerFrame.userBroadcast(user, topic: channel.key.topic) { return frame }
            return user.textPayload().map { frames.push("broadcast", payload: $0) }
        }
    }
}
