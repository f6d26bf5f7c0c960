/// What a notification is; APNs wants to be told (`apns-push-type`), and refuses what the payload contradicts.
package enum PushKind: String, Sendable, CaseIterable {
    /// Shown to the user.
    case alert
    /// Wakes the app; never with priority 10.
    case background
    case liveActivity = "liveactivity"

    /// What follows the bundle id in `apns-topic`.
    var topicSuffix: String {
        switch self {
        case .alert, .background: ""
        case .liveActivity: ".push-type.liveactivity"
        }
    }
}
