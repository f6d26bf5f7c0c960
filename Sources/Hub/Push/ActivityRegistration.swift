package import Wire

/// A Live Activity that a phone shows, and what it was last sent.
package struct ActivityRegistration: Sendable, Equatable {
    /// ActivityKit's id.
    package let id: Name
    /// The claim `sub` of whoever registered it.
    package let user: Name
    /// The claim `session_id` (Supabase Auth: one for each sign-in, so for each device), where the token had one.
    package let session: Name?
    package let destination: PushDestination
    /// What it is about; nil where only a backend updates it.
    package let conversation: Name?
    /// When this token was registered, in milliseconds since 1970, by the database's clock.
    package let registeredAt: Int64
    /// When the activity was registered first, in milliseconds since 1970.
    package let startedAt: Int64
    /// `aps.timestamp` of what was sent last, in seconds since 1970; 0 before the first.
    package let timestamp: Int64
    /// How many states it was sent.
    package let version: Int
    /// The content-state that was sent last, as JSON.
    package let state: [UInt8]?
    /// A backend said it: the activity is the backend's.
    package let isPosted: Bool
    /// What the backend posted last, if that is not the state; see `PostedState`.
    package let post: [UInt8]?
    /// Apple is known to have taken it.
    package let wasDelivered: Bool

    package init(
        id: Name, user: Name, session: Name?, destination: PushDestination, conversation: Name?,
        registeredAt: Int64, startedAt: Int64, timestamp: Int64 = 0, version: Int = 0, state: [UInt8]? = nil,
        isPosted: Bool = false, post: [UInt8]? = nil, wasDelivered: Bool = false
    ) {
        self.id = id
        self.user = user
        self.session = session
        self.destination = destination
        self.conversation = conversation
        self.registeredAt = registeredAt
        self.startedAt = startedAt
        self.timestamp = timestamp
        self.version = version
        self.state = state
        self.isPosted = isPosted
        self.post = post
        self.wasDelivered = wasDelivered
    }
}

/// The state that a Live Activity is about to be pushed, as it is written down before the push leaves, so that no hub
/// and no later process sends the same activity anything older.
package struct ActivityStamp: Sendable, Equatable {
    /// The activity's id.
    package let id: Name
    /// `aps.timestamp`, in seconds since 1970; greater than the activity's last.
    package let timestamp: Int64
    /// How many states the activity was sent, this one included.
    package let version: Int
    /// The content-state, as JSON; nil for an end of which no state is known.
    package let state: [UInt8]?
    /// Whether a backend said the state: the activity is the backend's then, and stays so after a restart.
    package let isPosted: Bool
    /// What the backend posted, if that is not the state.
    package let post: [UInt8]?

    package init(
        id: Name, timestamp: Int64, version: Int, state: [UInt8]?, isPosted: Bool = false, post: [UInt8]? = nil
    ) {
        self.id = id
        self.timestamp = timestamp
        self.version = version
        self.state = state
        self.isPosted = isPosted
        self.post = post
    }
}

/// The life of a Live Activity, as `aps.event` says it (Apple: "Starting and updating Live Activities with ActivityKit
/// push notifications").
package enum ActivityEvent: String, Sendable {
    case start, update, end
}
