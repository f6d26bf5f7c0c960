package import Matching
package import Wire

/// The source of row changes, as the loops see it. Called on their threads; must not block.
package protocol ChangeSource: Sendable {
    func subscribe(_ id: ChangeGroupID, _ subscription: ChangeSubscription)
    func unsubscribe(_ id: ChangeGroupID)
    /// Adds claims for which the group's policies are asked. Commits after this call are judged for them too.
    func admitClaims(_ claims: Claims, to id: ChangeGroupID)
    func withdrawClaims(_ claims: Claims, from id: ChangeGroupID)
    /// Asks for the changes a member missed. Its group is live, and its claims were admitted.
    func startRecovery(_ id: RecoveryID, _ question: RecoveryQuestion)
    /// The member is gone; steps that are under way are ignored.
    func abandonRecovery(_ id: RecoveryID)
}

/// The destination of everything read from the database. Called from any thread; must not block.
package protocol FeedSink: Sendable {
    var loopCount: Int { get }
    /// Hands a loop the events that were read. `whenTaken` is called on the loop's thread once its sockets have taken
    /// them or had the chance to: large windows are read no faster than that.
    func deliverEvents(_ events: [FeedEvent], to loop: Int, whenTaken: @escaping @Sendable () -> Void)
}

/// The destination of row changes, as the feed sees it. Called on the feed's thread; must not block.
package protocol ChangeSink: FeedSink {
    func changeSubscription(_ id: ChangeGroupID, is outcome: ChangeSubscriptionOutcome)
    /// Delivers steps of one member's recovery, in order with the other events for its loop.
    func deliverRecovery(_ id: RecoveryID, _ steps: [RecoveryStep], whenTaken: @escaping @Sendable () -> Void)
    func feedChanged(isReady: Bool)
}

/// A group's subscription to the change feed.
package struct ChangeSubscription: Sendable {
    package let role: Name
    package let bindings: [ChangeBinding]
    /// The ID of each binding, as announced to the subscribers.
    package let ids: [Int]
    /// The join had no config, as with old clients: the topic names the table, and events carry the change itself.
    package let isLegacy: Bool
    /// The number of conditions that compare with a pattern.
    let patterns: Int

    package init(role: Name, bindings: [ChangeBinding], ids: [Int], isLegacy: Bool = false) {
        self.role = role
        self.bindings = bindings
        self.ids = ids
        self.isLegacy = isLegacy
        patterns = bindings.reduce(0) { $0 + $1.patterns }
    }

    /// The properties shared by all members that one group of a channel serves.
    struct Key: Hashable {
        let role: Name
        let bindings: [ChangeBinding]
        let isLegacy: Bool
    }

    var key: Key { Key(role: role, bindings: bindings, isLegacy: isLegacy) }
}

/// Identifies a group of subscribers within one loop; never reused.
package struct ChangeGroupID: Hashable, Sendable {
    package let loop: Int
    package let serial: Int

    package init(loop: Int, serial: Int) {
        self.loop = loop
        self.serial = serial
    }
}

/// The change feed's answer to a subscription.
package enum ChangeSubscriptionOutcome: Sendable {
    /// Every commit from now on is delivered.
    case live
    /// The part that can be served is live. The complaints are about the rest.
    case partly([SubscriptionComplaint])
    /// The subscription cannot be served as it is; the sentence says why and what to do. The feed retries by itself.
    case failed(String)
    /// The database is away, and required facts about its tables are not known yet.
    case unavailable
}

/// The reason why one of a group's bindings is not served, or not fully.
package struct SubscriptionComplaint: Sendable, Equatable {
    /// One sentence for people, with what to do.
    package let message: String
    /// Requested changes do not come; if false, only changes written in an unusual way may be missing.
    package let isError: Bool

    package init(_ message: String, isError: Bool) {
        self.message = message
        self.isError = isError
    }
}

/// An event that the change feed brings a loop, in commit order.
package enum FeedEvent: Sendable {
    case change(ChangeDelivery)
    case broadcast(DatabaseBroadcast)
    /// The answer to a member's `Action.recover`, in order with the loop's changes.
    case recovery(RecoveryID, RecoveryStep)
    /// This mark covers everything before it; marks only grow. See `RecoveryPoint.mark`.
    case boundary(Int)
    /// After a boundary: everyone who hears changes through this loop has all of them up to this cursor, even if none
    /// was for the loop.
    case reached(cursor: String)
    /// Until the next boundary, a change is withheld from some receivers because a policy fails on it: having a later
    /// change does not imply having all before it.
    case withheld
    /// Subscribers of a group with these claims must be told what they are not served, and so must any that start to
    /// hear it within this many milliseconds.
    case complaint(SubscriptionComplaint, ChangeGroupID, Claims, milliseconds: Int64)
    /// All who hear a group's changes must be told that some are lost to everyone. A recovery across this point reports
    /// the loss itself.
    case loss(String, ChangeGroupID)
    /// Changes that no subscriber was told of are lost.
    case gap
    /// Messages to channels of these patterns may be lost.
    case broadcastGap([ChannelPattern])
    /// A message (`RowChange.id`) is waiting for a decision before it can be sent to some receivers, or no longer is.
    /// Follows the changes that were decided.
    case messageWaits(Int64, [MessageWait])
    /// Questions whether users have certainly received rows among the changes before.
    case receipts([ReceiptQuestion])
}

/// A message sent by SQL: a row of `realtime.messages` (wire-protocol B), or the outcome of a notification.
package struct DatabaseBroadcast: Sendable {
    package let key: ChannelKey
    /// The same on every loop, and unique to the message; for a row, its ID as shown in the message's `meta`.
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
    /// The group's bindings that match.
    package let ids: [Int]
    /// The encoded `data` of the event, shared by all groups that see the same columns.
    package let data: [UInt8]
    package let recipients: Recipients
    /// The cursor from which a client that has this change may resume; opaque, and JSON text without escapes. Empty if
    /// resuming is impossible.
    package let cursor: String
    /// Microseconds since 1970; nil if lateness does not matter, as in a recovery.
    package let committedAtMicroseconds: Int64?
    /// `RowChange.id`, if receipts of the change may be asked for: the change is the insert of a message.
    package let message: Int64?
    /// The row to which the message's receipts are written back.
    package let receipt: ReceiptRow?
    /// Not a change: a row of the state that its member starts with.
    package let isSnapshot: Bool

    package enum Recipients: Sendable {
        case everybody
        /// Subscribers with one of these claims: policies hide the row from all others.
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
    /// The change that the message is about, if it is an insert sent by `realtime.broadcast_changes`.
    var insert: JSON? {
        guard case .user(let user) = broadcast, user.encoding == .json else { return nil }
        let payload: JSON
        do { payload = try JSON(parsing: user.payload) } catch { return nil }
        return payload["operation"]?.string == "INSERT" ? payload : nil
    }
}
