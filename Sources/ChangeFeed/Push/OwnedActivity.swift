package import Hub

/// A Live Activity, and the hub that updates it.
package struct OwnedActivity: Sendable, Equatable {
    package let activity: ActivityRegistration
    /// The name of the hub.
    package let node: String
    /// It gets nothing any more.
    package let hasEnded: Bool
}

/// What became of the registration of an activity.
package enum ActivityOutcome: Sendable, Equatable {
    /// With what the activity was sent last, where it was known before.
    case registered(ActivityRegistration)
    /// The id belongs to another user: nothing has changed, and nothing of that activity is told.
    case othersActivity
    /// The user has too many activities that have not ended (`PushStore.activitiesPerUser`).
    case tooMany
}

/// What the database answers to an `ActivityStamp`.
package enum StampOutcome: Sendable, Equatable {
    /// The stamp is written down: its push may leave.
    case granted
    /// Another hub owns the activity, or it has ended, or it was sent something as new already; the value says how it is
    /// by now.
    case refused(OwnedActivity)
    /// No such activity is registered, or another session writes to it this very moment: nothing is to be sent now.
    case unknown
}
