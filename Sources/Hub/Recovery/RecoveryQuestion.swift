/// One member's recovery; never used twice.
package struct RecoveryID: Hashable, Sendable {
    package let loop: Int
    package let serial: Int

    package init(loop: Int, serial: Int) {
        self.loop = loop
        self.serial = serial
    }
}

/// What a member missed: the changes that its group asked for, as far as these claims may see them today.
package struct RecoveryQuestion: Sendable {
    package let group: ChangeGroupID
    package let claims: Claims
    package let from: RecoveryPoint
    /// Rows that it is to begin with, and then what changed since they were read. Nil where it begins with what it missed. If it
    /// says itself where it was and that can be told, only the fresh ones among them count.
    package let rows: FirstRows?
    /// It missed nothing: with rows, it begins where these were read. Else it is sent what it missed of tables whose rows it does not
    /// begin with.
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

/// From where a member is to be sent what it missed.
package enum RecoveryPoint: Sendable, Hashable {
    /// What the feed of this process handed on up to this mark (`FeedEvent.boundary`) has arrived; 0 is where it began.
    case mark(Int)
    /// A client says it itself: a cursor that came with a change, or with the reply to a join.
    case cursor(String)
    /// Where the hub's last process may have left its clients.
    case restart
    /// Where that process certainly had this client: a snapshot of Postgres, as text.
    case restored(String)
    /// Where another hub certainly had its clients: a snapshot of Postgres, as text.
    case snapshot(String)
    /// The same, where that hub itself says how far its client is: a cursor; and the snapshot that counts where this one is not good here.
    case peer(cursor: String, otherwise: String)
    /// Whichever of several lies further back: they cannot be compared here.
    indirect case earliest([RecoveryPoint])
}

/// The feed's answer to a recovery, in steps.
package enum RecoveryStep: Sendable {
    /// Whether what was missed can be told. Once, and first.
    case began(RecoveryStart)
    /// The rows that it begins with follow, as changes: what it had before does not count any more.
    case rowsBegin
    /// They were told. What follows changed since they were read.
    case rowsEnd(FirstRowsReport)
    /// What was missed, in order, for this member alone.
    case changes([ChangeDelivery])
    /// Something of what was missed cannot be told, as it could not be recorded; the rest follows.
    case changesLost
    /// The end: all that lies behind this cursor comes live.
    case caughtUp(cursor: String)
    /// The end as far as the feed knows; but the member's socket took so long that what comes live since this cursor has
    /// passed it by. Said by the loop in place of `caughtUp`.
    case passedBy(since: String)
    /// The end, too: the database is away. The client has to join again.
    case unavailable
    /// The end, too: a policy failed on what was missed, so nobody knows whether it may be shown. The client has to join
    /// again.
    case undecided
}

package enum RecoveryStart: Sendable, Equatable {
    case resumed
    /// It begins with rows.
    case rows
    /// Some of what was missed is not known any more; the client has to read it for itself. What is known of the rest follows for
    /// those who brought no cursor, since no reply tells them.
    case refused(RecoveryRefusal)
}

extension RecoveryStart {
    /// For the metrics.
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

/// Why changes that a client may have missed cannot be told; the raw value is what the join's reply says.
package enum RecoveryRefusal: String, Sendable {
    case tooOld = "The cursor is older than the changes that are kept: load the data again."
    case otherDatabase =
        "The cursor was given out by another database, or before a restore or a failover: load the data again."
    case malformed = "The cursor is not one that this hub gave out: load the data again."
    case ahead = "The cursor lies ahead of the database, which may have been restored: load the data again."
}
