/// Whom an alert is for, by what is known of the message's receipt (`alerts.when`).
package enum AlertCondition: String, Sendable, CaseIterable {
    /// Whoever has not certainly been shown the message by an app on the screen.
    case unseen
    /// Whoever has not certainly received it, whatever the app does.
    case unreceived
    /// Whoever has no socket.
    case away
}

/// Whether what one device of a user's shows is pushed to the user's other phones (`alerts.devices`).
package enum AlertDevices: String, Sendable, CaseIterable {
    /// It is not: all devices of a user are judged together.
    case together
    /// Each phone is judged by what its own app proves.
    case each
}
