package import Matching
package import Wire

/// Where row changes come from, as the loops see it. Called on their threads; must not wait.
package protocol ChangeSource: Sendable {
    func subscribe(_ id: ChangeGroupID, _ subscription: ChangeSubscription)
    func unsubscribe(_ id: ChangeGroupID)
    /// Whom the group's policies are asked about. What commits after this call is judged for them, too.
    func admit(_ claims: Claims, to id: ChangeGroupID)
    func withdraw(_ claims: Claims, from id: ChangeGroupID)
    /// Asks for what a member missed. Its group is live, and its claims were admitted.
    func recover(_ id: RecoveryID, _ question: RecoveryQuestion)
    /// The member is gone; steps that are under way are ignored.
    func abandon(_ id: RecoveryID)
}

/// Where what is read from the database goes. From any thread; must not wait.
package protocol FeedSink: Sendable {
    var loopCount: Int { get }
    /// Hands a loop what was read. `whenTaken` is called, on the loop's thread, once its sockets have taken them or were
    /// given their chance: large windows are read no faster than that.
    func deliver(_ events: [FeedEvent], to loop: Int, whenTaken: @escaping @Sendable () -> Void)
}

/// Where row changes go, as the feed sees it. Called on the feed's thread; must not wait.
package protocol ChangeSink: FeedSink {
    func changeSubscription(_ id: ChangeGroupID, is outcome: ChangeSubscriptionOutcome)
    /// Steps of one member's recovery, in order with what is delivered to its loop.
    func recovery(_ id: RecoveryID, _ steps: [RecoveryStep], whenTaken: @escaping @Sendable () -> Void)
    func feed(isReady: Bool)
}

/// What a group of subscribers wants to hear from the change feed.
package struct ChangeSubscription: Sendable {
    package let role: Name
    package let bindings: [ChangeBinding]
    /// The id of each binding, as the subscribers were told.
    package let ids: [Int]
    /// Joined without a config, as clients of old did: the topic names the table, and events carry the change itself.
    package let isLegacy: Bool
    /// Conditions that compare with a pattern.
    let patterns: Int

    package init(role: Name, bindings: [ChangeBinding], ids: [Int], isLegacy: Bool = false) {
        self.role = role
        self.bindings = bindings
        self.ids = ids
        self.isLegacy = isLegacy
        patterns = bindings.reduce(0) { $0 + $1.patterns }
    }

    /// What is the same for all who are served by one group of a channel.
    struct Key: Hashable {
        let role: Name
        let bindings: [ChangeBinding]
        let isLegacy: Bool
    }

    var key: Key { Key(role: role, bindings: bindings, isLegacy: isLegacy) }
}

/// A group of subscribers within one loop; never used twice.
package struct ChangeGroupID: Hashable, Sendable {
    package let loop: Int
    package let serial: Int

    package init(loop: Int, serial: Int) {
        self.loop = loop
        self.serial = serial
    }
}

/// What became of a subscription in the change feed.
package enum ChangeSubscriptionOutcome: Sendable {
    /// Every commit from now on is delivered.
    case live
    /// What can be served of it is live. The complaints are about the rest.
    case partly([SubscriptionComplaint])
    /// It cannot be served as it is; the sentence says why and what to do. The feed tries again by itself.
    case failed(String)
    /// The database is away, and what has to be known of its tables is not known yet.
    case unavailable
}

/// Why one of a group's bindings is not served, or not wholly.
package struct SubscriptionComplaint: Sendable, Equatable {
    /// One sentence for people, with what to do.
    package let message: String
    /// Changes that the client asked for do not come; else they might not, if somebody wrote in an unusual way.
    package let isError: Bool

    package init(_ message: String, isError: Bool) {
        self.message = message
        self.isError = isError
    }
}

/// What the change feed brings a loop, in the order it was committed.
package enum FeedEvent: Sendable {
    case change(ChangeDelivery)
    case broadcast(DatabaseBroadcast)
    /// The answer to a member's `Action.recover`, in order with the changes of the loop.
    case recovery(RecoveryID, RecoveryStep)
    /// All that came before is covered by this mark; marks only grow. See `RecoveryPoint.mark`.
    case boundary(Int)
    /// Behind a boundary: whoever hears changes by this loop has all up to this cursor, also where none of it was for the loop.
    case reached(cursor: String)
    /// Until the next boundary some change waits for somebody, as a policy fails on it: who has all up to a later change
    /// may lack it.
    case withheld
    /// Those of a group who brought these claims are told what they are not served of it, and so is whoever of them begins to hear
    /// it within so many milliseconds.
    case complaint(SubscriptionComplaint, ChangeGroupID, Claims, milliseconds: Int64)
    /// All who hear a group's changes are told that some are missing: nobody can be told them. Who recovers over that place is told
    /// by its recovery.
    case loss(String, ChangeGroupID)
    /// Changes that nobody was told of are gone.
    case gap
    /// Messages to such channels may be gone.
    case broadcastGap([ChannelPattern])
    /// A message (`RowChange.id`) waits for some before it can be sent to them, or does not any more: it stands behind what was decided.
    case messageWaits(Int64, [MessageWait])
    /// Whether users certainly have rows that were among the changes before.
    case receipts([ReceiptQuestion])
}

/// A message that SQL sent: a row of `realtime.messages` (wire-protocol B), or what became of a notification.
package struct DatabaseBroadcast: Sendable {
    package let key: ChannelKey
    /// The same on every loop, and of no other message; of a row its id, as the message's `meta` shows it.
    package let id: String
    package let broadcast: BroadcastMessage

    package init(key: ChannelKey, id: String, broadcast: BroadcastMessage) {
        self.key = key
        self.id = id
        self.broadcast = broadcast
    }
}

/// One change for one group of subscribers, ready for its loop.
package struct ChangeDelivery: Sendable {
    package let group: ChangeGroupID
    package let operation: RowChange.Operation
    /// Those of the group's bindings that match.
    package let ids: [Int]
    /// The encoded `data` of the event, shared by all groups that are shown the same columns.
    package let data: [UInt8]
    package let recipients: Recipients
    /// Where a client that has this change may go on; opaque, and JSON text without escapes. Empty where nobody can.
    package let cursor: String
    /// Microseconds since 1970; nil where it does not matter how late it is, as in a recovery.
    package let committedAtMicroseconds: Int64?
    /// `RowChange.id`, where somebody may ask who has certainly received the change: it is the insert of a message.
    package let message: Int64?
    /// Where its receipts are written back.
    package let receipt: ReceiptRow?
    /// It is no change: the row is one that its member begins with.
    package let isSnapshot: Bool

    package enum Recipients: Sendable {
        case everybody
        /// Those who brought one of these claims: policies let no others see the row.
        case bearers([Claims])
    }

    package init(
        group: ChangeGroupID, operation: RowChange.Operation, ids: [Int], data: [UInt8],
        recipients: Recipients = .everybody, cursor: String = "", committedAtMicroseconds: Int64? = nil,
        message: Int64? = nil, receipt: ReceiptRow? = nil, isSnapshot: Bool = false
    ) {
        self.group = group
        self.operation = operation
        self.ids = ids
        self.data = data
        self.recipients = recipients
        self.cursor = cursor
        self.committedAtMicroseconds = committedAtMicroseconds
        self.message = message
        self.receipt = receipt
        self.isSnapshot = isSnapshot
    }
}

extension DatabaseBroadcast {
    /// The change that the message is about, where it is an insert sent by `realtime.broadcast_changes`.
    var insert: JSON? {
        guard case .user(let user) = broadcast, user.encoding == .json else { return nil }
        let payload: JSON
        do { payload = try JSON(parsing: user.payload) } catch { return nil }
        return payload["operation"]?.string == "INSERT" ? payload : nil
    }
}
