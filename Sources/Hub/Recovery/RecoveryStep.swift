/// The feed's answer to a recovery, in steps.
package enum RecoveryStep: Sendable {
    /// Whether what was missed can be told. Once, and first.
    case began(RecoveryStart)
    /// What was missed, in order, for this member alone.
    case changes([ChangeDelivery])
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
    /// What was missed is not known any more; the client has to read it for itself.
    case refused(RecoveryRefusal)
}

extension RecoveryStart {
    /// For the metrics.
    var result: String {
        switch self {
        case .resumed: "resumed"
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
