/// The reason why an alert is sent, waits, or was dropped, for people to read.
package enum AlertReason: String, Sendable, CaseIterable {
    /// The user has no socket.
    case away
    /// The user was cut off, and may still come back in time.
    case grace
    /// The message was sent to the user's sockets, which have not proven its receipt.
    case unproven
    /// The user's sockets are gone without having proven its receipt.
    case lost
    /// None of the user's sockets hears the conversation.
    case unheard
    /// No app of the user is on the screen.
    case hidden
    /// An app on the screen has proven its receipt.
    case shown
    /// A socket has proven its receipt.
    case received
    /// A socket is open, which is all that `alerts.when: away` requires.
    case connected
    /// The alert is for everyone it names, connected or not: no socket is asked.
    case always
    /// The user came back while the alert could not be sent.
    case returned
    /// The user has read the message on another device.
    case read
}
