/// The life of a Live Activity, as `aps.event` says it (Apple: "Starting and updating Live Activities with ActivityKit
/// push notifications").
package enum ActivityEvent: String, Sendable {
    case start, update, end
}
