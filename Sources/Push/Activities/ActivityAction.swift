/// What the book asks of whoever keeps it.
package enum ActivityAction: Sendable, Equatable {
    /// To be written down, and answered with `stamped`, `unstamped` or `refused`.
    case stamp(StampRequest)
    /// To be sent to the user's sockets; nobody answers.
    case show(ShownState)
    /// It is over, and out of the book: its token is of no use any more.
    case ended(id: String)
    /// A state that cannot be pushed, such as one that the template made too large, is passed over; said once for each.
    case unsendable(id: String, PayloadError)
}

/// What became of a push.
package enum ActivityOutcome: Sendable, Equatable {
    case delivered
    /// It left, and nobody knows whether it arrived. The latest state goes again.
    case unanswered
    /// It did not leave, or was refused. If it is to be tried again, the latest state goes; otherwise nothing until
    /// something changes.
    case failed(retryLater: Bool)
    /// The token is of no use any more (410): so is the activity.
    case gone
}
