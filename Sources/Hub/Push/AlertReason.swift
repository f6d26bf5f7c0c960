/// Why an alert is sent, waits, or was dropped, for people who look.
package enum AlertReason: String, Sendable, CaseIterable {
    /// The user has no socket.
    case away
    /// The user was cut off, and the window for coming back is open.
    case grace
    /// The user's sockets were sent the message, and have not proven it.
    case unproven
    /// They are gone without having proven it.
    case lost
    /// None of the user's sockets hears the conversation.
    case unheard
    /// No app of the user's is on the screen.
    case hidden
    /// An app on the screen has proven it.
    case shown
    /// A socket has proven it.
    case received
    /// A socket is open, which is all that `alerts.when: away` asks for.
    case connected
    /// The alert is for whoever it names, connected or not: nobody is asked.
    case always
    /// The user came back while the alert could not be sent.
    case returned
    /// The user has read it, on another device.
    case read
}
