import Wire

/// Typing: a set of users per channel, which the hub keeps true. Clients only start it; silence, a lost socket, a leave
/// and the user's own message end it.
extension Hub {
    /// Takes a member's broadcast that says whether its user types. False for any other.
    func consumesTyping(_ message: Broadcast, of membership: Membership) -> Bool {
        guard typingRules.isOn else { return false }
        guard let sign = TypingSign(message) else {
            forgetTyping(of: membership.typist, saying: message, in: membership.channel)
            return false
        }
        let origin = membership.echoesToSelf ? nil : membership.slot
        take(sign, of: membership.typist, by: membership.member, origin: origin, in: membership.channel)
        return true
    }

    /// The same by HTTP.
    func consumesTyping(_ message: Broadcast, of user: String?, to key: ChannelKey) -> Bool {
        guard typingRules.isOn, let sign = TypingSign(message) else { return false }
        let channel = channel(key)
        take(
            sign, of: user.map { .user($0) } ?? .payload(sign.typingPayload), by: nil, origin: nil, in: channel)
        discardIfIdle(channel)
        return true
    }

    private func take(_ sign: TypingSign, of id: Typist.ID, by member: MemberID?, origin: Slot?, in channel: Channel) {
        guard sign.isTyping else { return stop(sign, of: id, origin: origin, in: channel) }
        typingBoard?.started(id, sign, in: channel.key, until: latest.monotonic + typingRules.silence)
        actions.append(.relay(.typing(channel.key, .started(id, sign))))
        let tellings = channel.typing.start(
            id, sign, member: member, origin: origin, rules: typingRules, at: latest.monotonic)
        counters.typingStarts += tellings.count { $0.isTyping }
        tell(tellings, in: channel)
    }

    private func stop(_ sign: TypingSign, of id: Typist.ID, origin: Slot?, in channel: Channel) {
        guard
            let tellings = channel.typing.stop(id, sign, origin: origin, rules: typingRules, at: latest.monotonic)
        else { return }
        typingBoard?.ended(id, in: channel.key)
        actions.append(.relay(.typing(channel.key, .stopped(id, sign))))
        tell(tellings, in: channel)
    }

    /// A user that was taken for a typist means something else by the event: nothing is made up about it.
    private func forgetTyping(of id: Typist.ID, saying message: Broadcast, in channel: Channel) {
        guard !channel.typing.isEmpty, message.payload(ofEvent: TypingSign.event) != nil,
            let tellings = channel.typing.forget(id, rules: typingRules, at: latest.monotonic)
        else { return }
        typingBoard?.ended(id, in: channel.key)
        actions.append(.relay(.typing(channel.key, .forgotten(id))))
        tell(tellings, in: channel)
    }

    /// Ends what a member that is not in the channel any more had started.
    func endTyping(of membership: Membership) {
        guard !membership.channel.typing.isEmpty else { return }
        for id in membership.channel.typing.ids(of: membership.member) { endTyping(of: id, in: membership.channel) }
    }

    /// Ends the typing of whoever wrote the row, before anybody here is shown the row.
    ///
    /// - Parameter change: as clients are sent it.
    func endTyping(ofAuthorOf change: @autoclosure () -> JSON?, in channel: Channel) {
        guard !channel.typing.isEmpty, let author = change().flatMap(typingRules.author) else { return }
        endTyping(of: .user(author), in: channel)
    }

    private func endTyping(of id: Typist.ID, in channel: Channel) {
        let (wasIn, tellings) = channel.typing.stop(id, rules: typingRules, at: latest.monotonic)
        guard wasIn else { return }
        typingBoard?.ended(id, in: channel.key)
        actions.append(.relay(.typing(channel.key, .ended(id))))
        tell(tellings, in: channel)
    }

    /// What another loop heard.
    func apply(_ typing: TypingRelay, to channel: Channel) {
        let now = latest.monotonic
        switch typing {
        case .started(let id, let sign):
            tell(
                channel.typing.start(id, sign, member: nil, origin: nil, rules: typingRules, at: now), in: channel)
        case .stopped(let id, let sign):
            tell(channel.typing.stop(id, sign, origin: nil, rules: typingRules, at: now) ?? [], in: channel)
        case .ended(let id): tell(channel.typing.stop(id, rules: typingRules, at: now).1, in: channel)
        case .forgotten(let id):
            tell(channel.typing.forget(id, rules: typingRules, at: now) ?? [], in: channel)
        }
    }

    func advanceTyping(in channel: Channel) {
        tell(channel.typing.advance(typingRules, at: latest.monotonic), in: channel)
        discardIfIdle(channel)
    }

    private func tell(_ tellings: [TypingSet.Telling], in channel: Channel) {
        for telling in tellings {
            let message = telling.sign.message(isTyping: telling.isTyping)
            for audience in [channel.members, channel.history?.audience].compactMap({ $0 }) {
                deliver(message, in: channel, to: audience, except: telling.except, kind: .step(.typing(channel.key)))
            }
        }
        if let due = channel.typing.nextDue(typingRules, at: latest.monotonic) {
            timetable.note(.typing(channel.key), at: due)
        }
    }

    // MARK: Joining

    /// Tells a member who types, when it joins; also that nobody does, where it may have heard that somebody did.
    func showTyping(to membership: Membership) {
        guard typingRules.isOn else { return }
        let channel = membership.channel
        guard channel.typing.shownCount > 0 || latest.monotonic - channel.typing.lastTold < typingRules.memory else {
            return
        }
        var payload = Array("{\"event\":\"typing_state\",\"payload\":{\"typing\":[".utf8)
        for (position, sign) in channel.typing.shown.enumerated() {
            if position > 0 { payload.append(UInt8(ascii: ",")) }
            payload += sign.typingPayload
        }
        payload += "],\"count\":\(channel.typing.count)},\"type\":\"broadcast\"}".utf8
        actions.append(.send(membership.frames.push("broadcast", payload: [payload[...]]), to: membership.slot))
    }

    /// The same for one who was spared some that started and ended. Nothing, if it left the channel meanwhile.
    func showTyping(of key: ChannelKey, to slot: Slot) {
        guard let channel = channels[key], let membership = connection(slot)?.memberships[channel],
            membership.hearsBroadcasts
        else { return }
        showTyping(to: membership)
    }
}

/// What one loop's hub tells the others of who types.
package enum TypingRelay: Sendable {
    case started(Typist.ID, TypingSign)
    /// It said so.
    case stopped(Typist.ID, TypingSign)
    /// It did not.
    case ended(Typist.ID)
    /// It means something else by it.
    case forgotten(Typist.ID)
}

extension Membership {
    var typist: Typist.ID { claims.subject.map { .user($0) } ?? .member(member) }
    var hearsBroadcasts: Bool { memberSeat != nil || history?.seat != nil }
}
