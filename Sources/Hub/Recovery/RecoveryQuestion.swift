/// Identifies one member's recovery; never reused.
package struct RecoveryID: Hashable, Sendable {
    package let loop: Int
    package let serial: Int

    package init(loop: Int, serial: Int) {
        self.loop = loop
        self.serial = serial
    }
}

/// A request for a member's missed changes: those its group asked for, as far as these claims may see them today.
package struct RecoveryQuestion: Sendable {
    package let group: ChangeGroupID
    package let claims: Claims
    package let from: RecoveryPoint
    /// Initial rows, to be followed by the changes since they were read. Nil if the member starts with missed changes.
    /// If it states its own position and can resume there, only the fresh ones among them count.
    package let rows: FirstRows?
    /// The member missed nothing: with rows, it starts where these were read. Otherwise it is sent missed changes of
    /// tables whose rows it does not start with.
    package let isNew: Bool

    package init(
        group: ChangeGroupID, claims: Claims, from: RecoveryPoint, rows: FirstRows? = nil, isNew: Bool = false
    ) {
        self.group = group
        self.claims = claims
        self.from = from
        self.rows = rows
        self.isNew = isNew
    }
}

/// The point from which a member must be sent missed changes.
package enum RecoveryPoint: Sendable, Hashable {
    /// Everything the feed of this process passed on up to this mark (`FeedEvent.boundary`) has arrived; 0 is its
    /// start.
    case mark(Int)
    /// A cursor stated by the client, which got it with a change or with the reply to a join.
    case cursor(String)
    /// The point at which the hub's last process may have left its clients.
    case restart
    /// The point that this client had certainly reached in that process: a snapshot of Postgres, as text.
    case restored(String)
    /// The point that another hub's clients had certainly reached: a snapshot of Postgres, as text.
    case snapshot(String)
    /// The same, as stated by that hub for the client itself: a cursor, and the snapshot to use if the cursor is not
    /// valid here.
    case peer(cursor: String, otherwise: String)
    /// The earliest of several points that cannot be compared here.
    indirect case earliest([RecoveryPoint])
}

/// A step of the feed's answer to a recovery.
package enum RecoveryStep: Sendable {
    /// The first step, sent once: whether the missed changes can be recovered.
    case began(RecoveryStart)
    /// Initial rows follow, as changes; the member's earlier state no longer counts.
    case rowsBegin
    /// The rows are complete. Changes since they were read follow.
    case rowsEnd(FirstRowsReport)
    /// Missed changes, in order, for this member alone.
    case changes([ChangeDelivery])
    /// Some missed changes are lost because they could not be recorded; the rest follows.
    case changesLost
    /// The end: everything after this cursor comes live.
    case caughtUp(cursor: String)
    /// The end as far as the feed knows, but the member's socket took so long that live changes since this cursor have
    /// passed it by. Sent by the loop in place of `caughtUp`.
    case passedBy(since: String)
    /// An end, too: the database is away. The client has to rejoin.
    case unavailable
    /// An end, too: a policy failed on a missed change, so it is unknown whether the change may be shown. The client
    /// has to rejoin.
    case undecided
}

package enum RecoveryStart: Sendable, Equatable {
    case resumed
    /// The member starts with rows.
    case rows
    /// Some missed changes are no longer known, and the client has to reload its data. For clients that brought no
    /// cursor, and thus see no such reply, the known changes follow.
    case refused(RecoveryRefusal)
}

extension RecoveryStart {
    /// The result's name in the metrics.
    var result: String {
        switch self {
        case .resumed: "resumed"
        case .rows: "rows"
        case .refused(.tooOld): "too_old"
        case .refused(.otherDatabase): "other_database"
        case .refused(.malformed): "malformed"
        case .refused(.ahead): "ahead"
        }
    }
}

/// The reason why a client's missed changes cannot be recovered; the raw value is the text in the join's reply.
package enum RecoveryRefusal: String, Sendable {
    case tooOld = "The cursor is older than the changes that are kept: load the data again."
    case otherDatabase =
        "The cursor was given out by another database, or before a restore or a failover: load the data again."
    case malformed = "The cursor is not one that this hub gave out: load the data again."
    case ahead = "The cursor lies ahead of the database, which may have been restored: load the data again."
}
