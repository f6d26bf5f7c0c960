import Wire

/// What one loop's hub tells those of the other loops, and where several hubs act as one, the other hubs.
package enum Relay: Sendable {
    case broadcast(ChannelKey, BroadcastMessage)
    /// To a channel whose history several hubs keep. First for all of them alone, who number it in one order; then it comes back
    /// to the loops as `isNumbered`.
    case ordered(ChannelKey, OrderedBroadcast, isNumbered: Bool)
    case presence(ChannelKey, PresenceDiff)
    case typing(ChannelKey, TypingRelay)
    /// For other hubs alone: a process' loops share their leases.
    case lease(ChannelKey, LeaseNotice)
    /// For other hubs alone: how long the member counts as present if its hub dies.
    case appState(ChannelKey, MemberID, ReportedAppState)
    /// For other hubs alone: this one has begun to keep the channel's history, or keeps it no more (`HistoryStore.wish`).
    case keeping(ChannelKey)
    /// From another hub alone: broadcasts of it are missing, and nobody knows which.
    case missing
}

/// A message to a channel whose history several hubs keep.
package struct OrderedBroadcast: Sendable {
    package let message: BroadcastMessage
    /// Who does not want it back; nil where that is nobody.
    package let sender: MessageSender?
    /// The id of the row of `realtime.messages` that it is: every hub's feed brings it, so it comes out of the log once for each.
    package let databaseID: String?

    package init(_ message: BroadcastMessage, sender: MessageSender? = nil, databaseID: String? = nil) {
        self.message = message
        self.sender = sender
        self.databaseID = databaseID
    }
}

/// What a hub tells the others of a cluster about the presence of a member that was cut off. The others' copies of the
/// notices come in one order for all hubs, and the first of `claimed` and `over` counts.
package enum LeaseNotice: Sendable, Equatable {
    /// It was cut off, and counts for so many milliseconds.
    case lost(MemberID, for: Int64)
    /// Its client may have joined another hub, where it has so many milliseconds to say so.
    case expected(MemberID, for: Int64)
    /// It is back, here or on another hub, and goes by the same id.
    case claimed(MemberID, loop: Int)
    /// Nobody came back for it in time. It ends by `LeaseConclusion.isOver`, once it is known that this stands first.
    case over(MemberID)
}

extension Hub {
    /// Takes over what another loop's hub did, or another hub.
    package func apply(_ relay: Relay) {
        switch relay {
        case .broadcast(let key, let message):
            guard let channel = channels[key] else { return }
            context.deliver(message, in: channel, to: channel.members, except: nil)
            passOnNews(in: channel)
        case .ordered(_, _, isNumbered: false): break
        case .ordered(let key, let broadcast, isNumbered: true):
            guard let channel = channels[key] else { return }
            // What SQL sent, every hub's feed brings by itself to those who have no history.
            if broadcast.databaseID == nil {
                let except = broadcast.sender.flatMap { context.slot(of: $0, in: channel) }
                context.deliver(broadcast.message, in: channel, to: channel.members, except: except)
            }
            passOnNews(in: channel)
        case .presence(let key, let diff):
            let channel = channel(key)
            presence.apply(diff, to: channel, &context)
            discardIfIdle(channel)
        case .typing(let key, let relay):
            let channel = channel(key)
            typing.apply(relay, to: channel, &context)
            discardIfIdle(channel)
        case .missing: messagesAreMissing()
        case .lease, .appState, .keeping: break
        }
    }

    /// What the others of the cluster did is not known any more. Who has history learns it from the ids, too.
    private func messagesAreMissing() {
        for channel in channels.values {
            for slot in channel.listeners.slots {
                guard let membership = context.member(slot, of: channel) else { continue }
                context.system(
                    membership, extension: "broadcast", ok: true,
                    message: "Messages from another hub may be missing: load what you show again.")
            }
        }
    }
}
