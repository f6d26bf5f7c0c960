package import Hub
package import Wire

/// A state that is about to be pushed to a Live Activity.
///
/// Its stamp is stored first, so that the next timestamp is newer even if the hub dies on the way.
package struct ActivityPush: Sendable, Equatable {
    package let stamp: ActivityStamp
    /// The claim `sub` of the user who registered the activity.
    package let user: Name
    package internal(set) var destination: PushDestination
    /// The time when the token was registered, in milliseconds since 1970.
    package internal(set) var registeredAt: Int64
    package let event: ActivityEvent
    /// Whether the phone makes a sound. Such a push, and an end, has priority 10.
    package let isAlerting: Bool
    /// The time when the phone marks the state as out of date, in seconds since 1970.
    package let staleDate: Int64
    /// The final JSON, within Apple's limit.
    package let payload: [UInt8]

    /// The activity's id.
    package var id: Name { stamp.id }
    /// `aps.timestamp`, in seconds since 1970.
    package var timestamp: Int64 { stamp.timestamp }
    /// `apns-priority`. 10 counts against a budget that Apple does not publish, 5 does not.
    package var priority: Int { isAlerting || event == .end ? 10 : 5 }

    /// The outcome of a push to a Live Activity.
    package enum Outcome: Sendable, Equatable {
        /// Apple accepted the push.
        case delivered
        /// The push left, but whether it arrived is unknown. The latest state is sent again.
        case unanswered
        /// The push did not leave, or was refused. If a retry is due, the latest state is sent; otherwise nothing is sent until
        /// something changes.
        case failed(retryLater: Bool)
        /// Apple reports the token as invalid since a moment (410), in milliseconds since 1970. The activity is gone too, unless it was
        /// registered again since then.
        case gone(since: Int64?)
    }
}

/// A state that the app is shown by socket instead of by push.
package struct ShownState: Sendable, Equatable {
    /// The activity's id.
    package let id: Name
    /// The claim `sub` of the user who registered the activity. No other user's sockets may get the state.
    package let user: Name
    package let event: ActivityEvent
    /// Seconds since 1970; shown and pushed states share one ascending sequence.
    package let timestamp: Int64
    /// The number of states that the activity was sent, including this one.
    package let version: Int
    /// The content-state, as JSON.
    package let state: [UInt8]
}

/// A request of `ActivityScheduler.advance` to its owner.
package enum ActivityAction: Sendable, Equatable {
    /// Store the stamp, and answer with `stamped`, `unstamped` or `refused`.
    case stamp(ActivityPush)
    /// Send the state to the user's sockets; there is no answer.
    case show(ShownState)
    /// The activity is over and out of the scheduler: its token is of no further use.
    case ended(id: Name)
    /// A state that cannot be pushed, such as one that the template made too large, is skipped. Reported once for each.
    case unsendable(id: Name, PayloadError)
}
