package import Hub

/// A state that is about to be pushed. Its timestamp has to be written down first, so that the next one is newer even
/// if the hub dies on the way.
package struct StampRequest: Sendable, Equatable {
    /// The activity's id.
    package let id: String
    package let user: String
    package internal(set) var destination: PushDestination
    package let event: ActivityEvent
    /// `aps.timestamp`, in seconds since 1970.
    package let timestamp: Int64
    package let version: Int
    /// The content-state, as JSON; nil for an end of which no state is known.
    package let state: [UInt8]?
    /// Whether a backend said it: the activity is the backend's then, and stays so after a restart.
    package let isPosted: Bool
    /// It rings. Such a push, and an end, has priority 10.
    package let isAlerting: Bool
    /// In seconds since 1970.
    package let staleDate: Int64
    /// The final JSON, within Apple's limit.
    package let payload: [UInt8]

    /// `apns-priority`. 10 counts against a budget that Apple does not publish, 5 does not.
    package var priority: Int { isAlerting || event == .end ? 10 : 5 }
}
