package import Wire

/// Typing: a set of users for each channel (`ChannelTyping`), which the hub maintains. Clients only start typing;
/// silence, a lost socket, a leave, and the user's own message end it.
package struct Typing {
    var rules: TypingRules
    /// Serves questions from outside the channels; nil if there are none.
    let registry: TypingRegistry?

    package init(rules: TypingRules, registry: TypingRegistry?) {
        self.rules = rules
        self.registry = registry
    }

    // MARK: Signals

    /// Handles a member's broadcast that says whether its user is typing. Returns false for any other message.
    func consumesTyping(_ message: BroadcastMessage, of membership: Membership, _ hub: inout HubContext) -> Bool {
        guard rules.isOn else { return false }
        guard let signal = TypingSignal(message) else {
            removeTypist(membership.typist, saying: message, in: membership.channel, &hub)
            return false
        }
        let origin = membership.echoesToSelf ? nil : membership.slot
        handleSignal(signal, of: membership.typist, by: membership.member, origin: origin, in: membership.channel, &hub)
        return true
    }

    /// Returns the typing signal in a message; nil for any other message.
    package func signal(in message: BroadcastMessage) -> TypingSignal? { rules.isOn ? TypingSignal(message) : nil }

    /// Handles a signal that came by HTTP.
    ///
    /// - Parameter user: the claim `sub` of the sender's token.
    package func handleSignal(_ signal: TypingSignal, of user: Name?, in channel: LocalChannel, _ hub: inout HubContext)
    {
        let typist = user.map { ChannelTypist.ID.user($0) } ?? .payload(signal.typingPayload)
        handleSignal(signal, of: typist, by: nil, origin: nil, in: channel, &hub)
    }

    private func handleSignal(
        _ signal: TypingSignal, of id: ChannelTypist.ID, by member: MemberID?, origin: Slot?, in channel: LocalChannel,
        _ hub: inout HubContext
    ) {
        guard signal.isTyping else { return stopTypist(signal, of: id, origin: origin, in: channel, &hub) }
        registry?.typingStarted(id, signal, in: channel.key, until: hub.now.monotonic + rules.silence)
        hub.sendRelay(.typing(channel.key, .started(id, signal)))
        let notices = channel.typing.startTypist(
            id, signal, member: member, origin: origin, rules: rules, at: hub.now.monotonic)
        hub.counters.typingStarts += notices.count { $0.isTyping }
        sendNotices(notices, in: channel, &hub)
    }

    private func stopTypist(
        _ signal: TypingSignal, of id: ChannelTypist.ID, origin: Slot?, in channel: LocalChannel,
        _ hub: inout HubContext
    ) {
        guard let notices = channel.typing.stopTypist(id, signal, origin: origin, rules: rules, at: hub.now.monotonic)
        else { return }
        registry?.typingEnded(id, in: channel.key)
        hub.sendRelay(.typing(channel.key, .stopped(id, signal)))
        sendNotices(notices, in: channel, &hub)
    }

    /// Removes a typist whose client turns out to use the event for something else: nothing is invented about it.
    private func removeTypist(
        _ id: ChannelTypist.ID, saying message: BroadcastMessage, in channel: LocalChannel, _ hub: inout HubContext
    ) {
        guard !channel.typing.isEmpty, message.payload(ofEvent: TypingSignal.event) != nil,
            let notices = channel.typing.removeTypist(id, rules: rules, at: hub.now.monotonic)
        else { return }
        registry?.typingEnded(id, in: channel.key)
        hub.sendRelay(.typing(channel.key, .forgotten(id)))
        sendNotices(notices, in: channel, &hub)
    }

    // MARK: Ends

    /// Ends typing started by a member that has left the channel.
    func endTyping(of membership: Membership, _ hub: inout HubContext) {
        let channel = membership.channel
        guard !channel.typing.isEmpty else { return }
        for id in channel.typing.ids(of: membership.member) { endTyping(id, in: channel, &hub) }
    }

    /// Ends the typing of the author of an inserted row, before any member here is shown the row.
    ///
    /// - Parameter change: in the form sent to clients.
    package func endTyping(
        ofAuthorOf change: @autoclosure () -> JSON?, in channel: LocalChannel, _ hub: inout HubContext
    ) {
        guard !channel.typing.isEmpty, let author = change().flatMap(rules.author) else { return }
        endTyping(.user(author), in: channel, &hub)
    }

    private func endTyping(_ id: ChannelTypist.ID, in channel: LocalChannel, _ hub: inout HubContext) {
        let (wasIn, notices) = channel.typing.stopTypist(id, rules: rules, at: hub.now.monotonic)
        guard wasIn else { return }
        registry?.typingEnded(id, in: channel.key)
        hub.sendRelay(.typing(channel.key, .ended(id)))
        sendNotices(notices, in: channel, &hub)
    }

    /// Ends typing that was not renewed, and announces typists that had to wait (the duty `.typing`).
    package func updateTypists(in channel: LocalChannel, _ hub: inout HubContext) {
        sendNotices(channel.typing.advanceTime(rules, at: hub.now.monotonic), in: channel, &hub)
    }

    /// Applies what another loop received.
    package func applyRelay(_ relay: TypingRelay, to channel: LocalChannel, _ hub: inout HubContext) {
        let now = hub.now.monotonic
        let notices =
            switch relay {
            case .started(let id, let signal):
                channel.typing.startTypist(id, signal, member: nil, origin: nil, rules: rules, at: now)
            case .stopped(let id, let signal):
                channel.typing.stopTypist(id, signal, origin: nil, rules: rules, at: now) ?? []
            case .ended(let id): channel.typing.stopTypist(id, rules: rules, at: now).1
            case .forgotten(let id): channel.typing.removeTypist(id, rules: rules, at: now) ?? []
            }
        sendNotices(notices, in: channel, &hub)
    }

    // MARK: Notices

    private func sendNotices(_ notices: [ChannelTyping.Notice], in channel: LocalChannel, _ hub: inout HubContext) {
        for notice in notices {
            let message = notice.signal.message(isTyping: notice.isTyping)
            let kind = FrameKind.step(.typing(channel.key))
            hub.deliverBroadcast(message, in: channel, to: channel.members, except: notice.except, kind: kind)
            if let audience = channel.history?.audience {
                hub.deliverBroadcast(message, in: channel, to: audience, except: notice.except, kind: kind)
            }
        }
        if let due = channel.typing.nextDue(rules, at: hub.now.monotonic) {
            hub.scheduleDuty(.typing(channel.key), at: due)
        }
    }

    /// Sends a member the list of users typing, when it joins or was spared some notices. An empty list is sent as well
    /// if the member may have been told of typing before.
    func showTyping(to membership: Membership, _ hub: inout HubContext) {
        guard rules.isOn else { return }
        let channel = membership.channel
        guard channel.typing.shownCount > 0 || hub.now.monotonic - channel.typing.lastNotice < rules.memory else {
            return
        }
        let payload = JSONWriter.object { writer in
            writer.writeMember("event", "typing_state")
            writer.writeKey("payload")
            writer.object { writer in
                writer.writeKey("typing")
                writer.array(channel.typing.shown) { $0.writeValue(json: $1.typingPayload) }
                writer.writeMember("count", channel.typing.count)
            }
            writer.writeMember("type", "broadcast")
        }
        hub.sendFrame(membership.frames.push("broadcast", payload: [payload[...]]), to: membership)
    }
}

/// A change of typing that one loop's hub relays to the others.
package enum TypingRelay: Sendable {
    case started(ChannelTypist.ID, TypingSignal)
    /// The client ended its typing itself.
    case stopped(ChannelTypist.ID, TypingSignal)
    /// Typing ended without a message of the client.
    case ended(ChannelTypist.ID)
    /// The client uses the event for something else.
    case forgotten(ChannelTypist.ID)
}

extension Membership {
    fileprivate var typist: ChannelTypist.ID { claims.subject.map { .user($0) } ?? .member(member) }
    var hearsBroadcasts: Bool { memberIndex != nil || history?.index != nil }
}

/// Rules for recognizing and announcing typing.
package struct TypingRules: Sendable {
    /// If off, a broadcast of this event is an ordinary one.
    package var isOn = true
    /// Milliseconds without a signal after which a user has stopped typing.
    package var silence: Int64 = 3000
    /// Milliseconds between two announced starts of one user.
    package var rhythm: Int64 = 1000
    /// The number of users announced in a channel at once, and of starts announced in a second.
    package var shown = 20
    /// Milliseconds for which a channel remembers typing: a member that joins in that time is sent the list even if it
    /// is empty.
    package var memory: Int64 = 120_000
    /// Inserts that end their author's typing.
    package var endings: [Ending] = Ending.standard

    package init() {}

    /// The column that names the author of a table's rows.
    package struct Ending: Sendable, Equatable {
        package let schema: Name
        package let table: Name
        package let column: Name

        package init(schema: Name, table: Name, column: Name) {
            self.schema = schema
            self.table = table
            self.column = column
        }

        /// - Parameter text: `SCHEMA.TABLE.COLUMN`, or `TABLE.COLUMN` in `public`.
        package init?(_ text: String) {
            let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { Name($0) }
            guard (2...3).contains(parts.count), parts.allSatisfy({ !$0.isEmpty }) else { return nil }
            self.init(
                schema: parts.count == 3 ? parts[0] : "public", table: parts[parts.count - 2],
                column: parts[parts.count - 1])
        }

        package static let standard = ["sender_id", "user_id", "author_id"].map {
            Ending(schema: "public", table: "messages", column: $0)
        }
    }

    /// Returns the author of an inserted row, if such inserts end typing.
    ///
    /// - Parameter change: `{"schema":…,"table":…,"record":{…}}`
    func author(of change: JSON) -> Name? {
        guard let record = change["record"], let table = change["table"]?.string.map({ Name($0) }) else { return nil }
        let schema = change["schema"]?.string.map { Name($0) }
        for ending in endings where ending.table == table && ending.schema == schema {
            guard let author = record[ending.column.text], !author.isNull else { continue }
            return Name(author.string ?? author.description)
        }
        return nil
    }
}
