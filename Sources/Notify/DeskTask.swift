import Gateway
import Hub
import Push

/// What other threads want of the desk.
enum DeskTask: Sendable {
    /// New rows of the tables that hold messages.
    case messages([RowChange])
    case call(PushCall, HTTPReply)
    case outcomes([(push: Push, outcome: PushOutcome)])
}
