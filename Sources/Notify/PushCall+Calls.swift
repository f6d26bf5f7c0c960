import ChangeFeed
import Gateway
import Hub
import Push
import Wire

/// A request to the HTTP API of pushes, understood and allowed.
enum PushCall: Sendable {
    case registerDevice(PushDestination, DeviceRegistration.Kind, PushBearer, replacing: PushToken?)
    case removeDevice(PushToken, user: String)
    case registerActivity(id: String, PushDestination, conversation: String?, PushBearer)
    case listActivities(user: String)
    case removeActivity(id: String, user: String)
    /// By a backend, these three.
    case update(id: String, ActivityPost)
    case start(user: String, StartCall)
    case broadcast(BroadcastCall)
}

/// A Live Activity that a backend wants started on all phones of a user (push-to-start, iOS 17.2).
struct StartCall: Sendable {
    let start: ActivityStart
    let state: JSON
    let alert: ActivityAlert
    /// Nil: whatever the token was registered for.
    let bundle: String?
}

/// News for everybody who follows a channel of Apple's (iOS 18).
struct BroadcastCall: Sendable {
    let channel: String
    let event: ActivityEvent
    let state: JSON
    /// Seconds since 1970; nil for now.
    let timestamp: Int64?
    let alert: ActivityAlert?
    let dismissal: Int64?
    let environment: PushEnvironment
    let bundle: String
}
