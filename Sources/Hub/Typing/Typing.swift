package import Wire

/// Who types: a set of users for each channel (`ChannelTyping`), which the hub keeps true. Clients only start it; silence, a lost
/// socket, a leave and the user's own message end it.
package struct Typing {
    var rules: TypingRules
    /// For whoever asks from outside of the channels; nil where nobody does.
    let registry: TypingRegistry?

    package init(rules: TypingRules, registry: TypingRegistry?) {
        self.rules = rules
        self.registry = registry
    }

    // MARK: What is said

    /// Takes a member's broadcast that says whether its user types. False for any other.
    func consumes(_ message: BroadcastMessage, of membership: Membership, _ hub: inout HubContext) -> Bool {
        guard rules.isOn else { return false }
        guard let signal = TypingSignal(message) else {
            forget(membership.typist, saying: message, in: membership.channel, &hub)
            return false
        }
        let origin = membership.echoesToSelf ? nil : membership.slot
        take(signal, of: membership.typist, by: membership.member, origin: origin, in: membership.channel, &hub)
        return true
    }

    /// What a message says of its sender's typing; nil for any other.
    package func signal(in message: BroadcastMessage) -> TypingSignal? { rules.isOn ? TypingSignal(message) : nil }

    /// Takes a signal that came by HTTP.
    ///
    /// - Parameter user: the claim `sub` of the sender's token.
    package func take(_ signal: TypingSignal, of user: Name?, in channel: LocalChannel, _ hub: inout HubContext) {
        let typist = user.map { ChannelTypist.ID.user($0) } ?? .payload(signal.typingPayload)
        take(signal, of: typist, by: nil, origin: nil, in: channel, &hub)
    }

    private func take(
        _ signal: TypingSignal, of id: ChannelTypist.ID, by member: MemberID?, origin: Slot?, in channel: LocalChannel,
        _ hub: inout HubContext
    ) {
        guard signal.isTyping else { return stop(signal, of: id, origin: origin, in: channel, &hub) }
        registry?.started(id, signal, in: channel.key, until: hub.now.monotonic + rules.silence)
        hub.relay(.typing(channel.key, .started(id, signal)))
        let notices = channel.typing.start(
            id, signal, member: member, origin: origin, rules: rules, at: hub.now.monotonic)
        hub.counters.typingStarts += notices.count { $0.isTyping }
        send(notices, in: channel, &hub)
    }

    private func stop(
        _ signal: TypingSignal, of id: ChannelTypist.ID, origin: Slot?, in channel: LocalChannel,
        _ hub: inout HubContext
    ) {
        guard let notices = channel.typing.stop(id, signal, origin: origin, rules: rules, at: hub.now.monotonic)
        else { return }
        registry?.ended(id, in: channel.key)
        hub.relay(.typing(channel.key, .stopped(id, signal)))
        send(notices, in: channel, &hub)
    }

    /// A user that was taken for a typist means something else by the event: nothing is made up about it.
    private func forget(
        _ id: ChannelTypist.ID, saying message: BroadcastMessage, in channel: LocalChannel, _ hub: inout HubContext
    ) {
        guard !channel.typing.isEmpty, message.payload(ofEvent: TypingSignal.event) != nil,
            let notices = channel.typing.forget(id, rules: rules, at: hub.now.monotonic)
        else { return }
        registry?.ended(id, in: channel.key)
        hub.relay(.typing(channel.key, .forgotten(id)))
        send(notices, in: channel, &hub)
    }

    // MARK: What ends it

    /// Ends what a member that is not in the channel any more had started.
    func end(of membership: Membership, _ hub: inout HubContext) {
        let channel = membership.channel
        guard !channel.typing.isEmpty else { return }
        for id in channel.typing.ids(of: membership.member) { end(id, in: channel, &hub) }
    }

    /// Ends the typing of whoever wrote the row of an insert, before anybody here is shown the row.
    ///
    /// - Parameter change: as clients are sent it.
    package func end(ofAuthorOf change: @autoclosure () -> JSON?, in channel: LocalChannel, _ hub: inout HubContext) {
        guard !channel.typing.isEmpty, let author = change().flatMap(rules.author) else { return }
        end(.user(author), in: channel, &hub)
    }

    private func end(_ id: ChannelTypist.ID, in channel: LocalChannel, _ hub: inout HubContext) {
        let (wasIn, notices) = channel.typing.stop(id, rules: rules, at: hub.now.monotonic)
        guard wasIn else { return }
        registry?.ended(id, in: channel.key)
        hub.relay(.typing(channel.key, .ended(id)))
        send(notices, in: channel, &hub)
    }

    /// Ends what nobody renewed, and shows those who had to wait: the duty `.typing`.
    package func advance(in channel: LocalChannel, _ hub: inout HubContext) {
        send(channel.typing.advance(rules, at: hub.now.monotonic), in: channel, &hub)
    }

    /// Takes over what another loop heard.
    package func apply(_ relay: TypingRelay, to channel: LocalChannel, _ hub: inout HubContext) {
        let now = hub.now.monotonic
        let notices =
            switch relay {
            case .started(let id, let signal):
                channel.typing.start(id, signal, member: nil, origin: nil, rules: rules, at: now)
            case .stopped(let id, let signal):
                channel.typing.stop(id, signal, origin: nil, rules: rules, at: now) ?? []
            case .ended(let id): channel.typing.stop(id, rules: rules, at: now).1
            case .forgotten(let id): channel.typing.forget(id, rules: rules, at: now) ?? []
            }
        send(notices, in: channel, &hub)
    }

    // MARK: What is shown

    private func send(_ notices: [ChannelTyping.Notice], in channel: LocalChannel, _ hub: inout HubContext) {
        for notice in notices {
            let message = notice.signal.message(isTyping: notice.isTyping)
            let kind = FrameKind.step(.typing(channel.key))
            hub.deliver(message, in: channel, to: channel.members, except: notice.except, kind: kind)
            if let audience = channel.history?.audience {
                hub.deliver(message, in: channel, to: audience, except: notice.except, kind: kind)
            }
        }
        if let due = channel.typing.nextDue(rules, at: hub.now.monotonic) {
            hub.schedule(.typing(channel.key), at: due)
        }
    }

    /// Tells a member who types, when it joins or was spared some that started and ended; also that nobody does, where it
    /// may have heard that somebody did.
    func show(to membership: Membership, _ hub: inout HubContext) {
        guard rules.isOn else { return }
        let channel = membership.channel
        guard channel.typing.shownCount > 0 || hub.now.monotonic - channel.typing.lastNotice < rules.memory else {
            return
        }
        let payload = JSONWriter.object { writer in
            writer.member("event", "typing_state")
            writer.key("payload")
            writer.object { writer in
                writer.key("typing")
                writer.array(channel.typing.shown) { $0.value(json: $1.typingPayload) }
                writer.member("count", channel.typing.count)
            }
            writer.member("type", "broadcast")
        }
        hub.send(membership.frames.push("broadcast", payload: [payload[...]]), to: membership)
    }
}

/// What one loop's hub tells the others of who types.
package enum TypingRelay: Sendable {
    case started(ChannelTypist.ID, TypingSignal)
    /// It said so.
    case stopped(ChannelTypist.ID, TypingSignal)
    /// It did not.
    case ended(ChannelTypist.ID)
    /// It means something else by it.
    case forgotten(ChannelTypist.ID)
}

extension Membership {
    fileprivate var typist: ChannelTypist.ID { claims.subject.map { .user($0) } ?? .member(member) }
    var hearsBroadcasts: Bool { memberIndex != nil || history?.index != nil }
}

/// How typing is understood.
package struct TypingRules: Sendable {
    /// Off: a broadcast of this event is like any other.
    package var isOn = true
    /// Milliseconds after which somebody who says nothing more has stopped.
    package var silence: Int64 = 3000
    /// Milliseconds between two starts of one user that others are told of.
    package var rhythm: Int64 = 1000
    /// Users that a channel is told of at once, and starts that it is told of in a second.
    package var shown = 20
    /// Milliseconds for which a channel remembers that there was typing: who joins then is told who types, if it is nobody.
    package var memory: Int64 = 120_000
    /// Inserts that end the typing of their author.
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

    /// Who wrote the row of an insert, if it is one that ends typing.
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
