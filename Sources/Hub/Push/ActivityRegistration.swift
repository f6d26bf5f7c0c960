package import Wire

/// A Live Activity shown on a phone, and what was last sent to it.
package struct ActivityRegistration: Sendable, Equatable {
    /// ActivityKit's ID.
    package let id: Name
    /// The claim `sub` of the user that registered it.
    package let user: Name
    /// The claim `session_id` (Supabase Auth: one for each sign-in, so for each device), if the token had one.
    package let session: Name?
    package let destination: PushDestination
    /// The conversation it shows; nil if only a backend updates it.
    package let conversation: Name?
    /// When this token was registered, in milliseconds since 1970, by the database's clock.
    package let registeredAt: Int64
    /// When the activity was first registered, in milliseconds since 1970.
    package let startedAt: Int64
    /// The `aps.timestamp` of the last push, in seconds since 1970; 0 before the first.
    package let timestamp: Int64
    /// The number of states sent to it.
    package let version: Int
    /// The last content-state sent, as JSON.
    package let state: [UInt8]?
    /// A backend set the state: the activity is the backend's.
    package let isPosted: Bool
    /// The backend's last post, if it differs from the state; see `PostedState`.
    package let post: [UInt8]?
    /// Apple is known to have accepted it.
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

/// A Live Activity's state that is about to be pushed, written down before the push is sent, so that no hub and no
/// later process sends the same activity anything older.
package struct ActivityStamp: Sendable, Equatable {
    /// The activity's ID.
    package let id: Name
    /// `aps.timestamp`, in seconds since 1970; greater than the activity's last.
    package let timestamp: Int64
    /// The number of states sent to the activity, including this one.
    package let version: Int
    /// The content-state, as JSON; nil for an end without a known state.
    package let state: [UInt8]?
    /// Whether a backend set the state: the activity is the backend's then, and stays so after a restart.
    package let isPosted: Bool
    /// The backend's post, if it differs from the state.
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

/// The stage of a Live Activity's life, as in `aps.event` (Apple: "Starting and updating Live Activities with
/// ActivityKit push notifications").
package enum ActivityEvent: String, Sendable {
    case start, update, end
}
