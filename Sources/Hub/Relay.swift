import Wire

/// A message of one loop's hub to those of the other loops and, in a cluster, to the other hubs.
package enum Relay: Sendable {
    case broadcast(ChannelKey, BroadcastMessage)
    /// To a channel whose history several hubs keep. It first goes to all hubs to be numbered in one order, and then
    /// comes back to the loops as `isNumbered`.
    case ordered(ChannelKey, OrderedBroadcast, isNumbered: Bool)
    case presence(ChannelKey, PresenceDiff)
    case typing(ChannelKey, TypingRelay)
    /// For other hubs only: a process' loops share their leases.
    case lease(ChannelKey, LeaseNotice)
    /// For other hubs only: how long the member counts as present if its hub dies.
    case appState(ChannelKey, MemberID, ReportedAppState)
    /// For other hubs only: this hub has started or stopped keeping the channel's history (`HistoryStore.wish`).
    case keeping(ChannelKey)
    /// From other hubs only: an unknown number of another hub's broadcasts are missing.
    case missing
}

/// A message to a channel whose history several hubs keep.
package struct OrderedBroadcast: Sendable {
    package let message: BroadcastMessage
    /// The sender, if it wants no echo.
    package let sender: MessageSender?
    /// The ID of the row of `realtime.messages`, if it is one: every hub's feed brings it, so it comes out of the log
    /// once for each.
    package let databaseID: String?

    package init(_ message: BroadcastMessage, sender: MessageSender? = nil, databaseID: String? = nil) {
        self.message = message
        self.sender = sender
        self.databaseID = databaseID
    }
}

/// A hub's message to the others of a cluster about the presence of a member that was cut off. The others receive the
/// notices in one order for all hubs, and the first of `claimed` and `over` counts.
package enum LeaseNotice: Sendable, Equatable {
    /// The member was cut off, and counts as present for this many milliseconds.
    case lost(MemberID, for: Int64)
    /// Its client may have joined another hub, where it has this many milliseconds to identify itself.
    case expected(MemberID, for: Int64)
    /// Its client is back, on this or another hub, and uses the same ID.
    case claimed(MemberID, loop: Int)
    /// Its client did not come back in time. It ends by `LeaseConclusion.isOver`, once it is known that this notice
    /// came first.
    case over(MemberID)
}

extension Hub {
    /// Applies a relay of another loop's hub, or of another hub.
    package func applyRelay(_ relay: Relay) {
        switch relay {
        case .broadcast(let key, let message):
            guard let channel = channels[key] else { return }
            context.deliverBroadcast(message, in: channel, to: channel.members, except: nil)
            passOnNews(in: channel)
        case .ordered(_, _, isNumbered: false): break
        case .ordered(let key, let broadcast, isNumbered: true):
            guard let channel = channels[key] else { return }
            // Every hub's feed delivers messages from SQL to members without history by itself.
            if broadcast.databaseID == nil {
                let except = broadcast.sender.flatMap { context.slot(of: $0, in: channel) }
                context.deliverBroadcast(broadcast.message, in: channel, to: channel.members, except: except)
            }
            passOnNews(in: channel)
        case .presence(let key, let diff):
            let channel = ensureChannel(key)
            presence.applyDiff(diff, to: channel, &context)
            discardIfIdle(channel)
        case .typing(let key, let relay):
            let channel = ensureChannel(key)
            typing.applyRelay(relay, to: channel, &context)
            discardIfIdle(channel)
        case .missing: messagesAreMissing()
        case .lease, .appState, .keeping: break
        }
    }

    /// Tells members that messages of other hubs may be missing. Members with history learn it from the IDs as well.
    private func messagesAreMissing() {
        for channel in channels.values {
            for slot in channel.listeners.slots {
                guard let membership = context.member(slot, of: channel) else { continue }
                context.sendSystemMessage(
                    membership, extension: "broadcast", ok: true,
                    message: "Messages from another hub may be missing: load what you show again.")
            }
        }
    }
}
