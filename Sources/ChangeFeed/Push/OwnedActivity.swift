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
