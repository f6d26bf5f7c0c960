/// The state that a Live Activity is about to be pushed, as it is written down before the push leaves, so that no hub
/// and no later process sends the same activity anything older.
package struct ActivityStamp: Sendable, Equatable {
    /// The activity's id.
    package let id: String
    /// `aps.timestamp`, in seconds since 1970; greater than the activity's last.
    package let timestamp: Int64
    /// How many states the activity was sent, this one included.
    package let version: Int
    /// The content-state, as JSON; nil for an end of which no state is known.
    package let state: [UInt8]?
    /// Whether a backend said the state: the activity is the backend's then, and stays so after a restart.
    package let isPosted: Bool

    package init(id: String, timestamp: Int64, version: Int, state: [UInt8]?, isPosted: Bool = false) {
        self.id = id
        self.timestamp = timestamp
        self.version = version
        self.state = state
        self.isPosted = isPosted
    }
}
