package import Hub
package import Wire

/// A state that is about to be pushed to a Live Activity.
///
/// Its stamp has to be written down first, so that the next timestamp is newer even if the hub dies on the way.
package struct ActivityPush: Sendable, Equatable {
    package let stamp: ActivityStamp
    /// The claim `sub` of whoever registered the activity.
    package let user: Name
    package internal(set) var destination: PushDestination
    /// When the token was registered, in milliseconds since 1970.
    package internal(set) var registeredAt: Int64
    package let event: ActivityEvent
    /// Whether the phone makes a sound. Such a push, and an end, has priority 10.
    package let isAlerting: Bool
    /// When the phone marks the state as out of date, in seconds since 1970.
    package let staleDate: Int64
    /// The final JSON, within Apple's limit.
    package let payload: [UInt8]

    /// The activity's id.
    package var id: Name { stamp.id }
    /// `aps.timestamp`, in seconds since 1970.
    package var timestamp: Int64 { stamp.timestamp }
    /// `apns-priority`. 10 counts against a budget that Apple does not publish, 5 does not.
    package var priority: Int { isAlerting || event == .end ? 10 : 5 }

    /// What became of a push to a Live Activity.
    package enum Outcome: Sendable, Equatable {
        /// Apple took it.
        case delivered
        /// It left, and nobody knows whether it arrived. The latest state goes again.
        case unanswered
        /// It did not leave, or was refused. If it is to be tried again, the latest state goes; otherwise nothing goes
        /// until something changes.
        case failed(retryLater: Bool)
        /// Apple says that the token is of no use since a moment (410), in milliseconds since 1970: nor is the activity, unless
        /// it was registered again since.
        case gone(since: Int64?)
    }
}

/// A state that is shown to the app by socket instead of by push.
package struct ShownState: Sendable, Equatable {
    /// The activity's id.
    package let id: Name
    /// The claim `sub` of whoever registered the activity. Nobody else's sockets may get the state.
    package let user: Name
    package let event: ActivityEvent
    /// Seconds since 1970; shown and pushed states share one ascending sequence.
    package let timestamp: Int64
    /// How many states the activity was sent, this one included.
    package let version: Int
    /// The content-state, as JSON.
    package let state: [UInt8]
}

/// What `ActivityScheduler.advance` asks of its owner.
package enum ActivityAction: Sendable, Equatable {
    /// The stamp is to be written down, and answered with `stamped`, `unstamped` or `refused`.
    case stamp(ActivityPush)
    /// The state is to be sent to the user's sockets; nobody answers.
    case show(ShownState)
    /// The activity is over, and out of the scheduler: its token is of no use any more.
    case ended(id: Name)
    /// A state that cannot be pushed, such as one that the template made too large, is passed over. Said once for each.
    case unsendable(id: Name, PayloadError)
}
