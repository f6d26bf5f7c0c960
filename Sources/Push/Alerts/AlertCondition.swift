/// The users that an alert is for, by the known receipt of the message (`alerts.when`).
package enum AlertCondition: String, Sendable, CaseIterable {
    /// Users whose apps have not certainly shown the message on the screen.
    case unseen
    /// Users who have not certainly received the message, whatever the app does.
    case unreceived
    /// Users without a socket.
    case away
}

/// Whether a message shown by one of a user's devices is pushed to the user's other phones (`alerts.devices`).
package enum AlertDevices: String, Sendable, CaseIterable {
    /// It is not pushed: all devices of a user are judged together.
    case together
    /// Each phone is judged by what its own app proves.
    case each
}
