/// What an activity is about to be sent: to be written down before it leaves, so that no hub and no later process sends
/// the same activity anything older.
package struct StampRequest: Sendable, Equatable {
    package let id: String
    /// `aps.timestamp`, in seconds since 1970; has to be greater than the last.
    package let timestamp: Int64
    package let version: Int
    /// The content-state as JSON.
    package let state: [UInt8]
    /// A backend said it.
    package let isPosted: Bool

    package init(id: String, timestamp: Int64, version: Int, state: [UInt8], isPosted: Bool = false) {
        self.id = id
        self.timestamp = timestamp
        self.version = version
        self.state = state
        self.isPosted = isPosted
    }
}

/// The answer to a `StampRequest`.
package enum StampOutcome: Sendable, Equatable {
    /// Written down: it may leave.
    case granted
    /// Another hub owns the activity, it has ended, or was sent something as new already: how it is by now.
    case refused(OwnedActivity)
    /// No such activity is registered, or another session writes to it this very moment: not to be sent now.
    case unknown
}
