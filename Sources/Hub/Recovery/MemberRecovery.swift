import Wire

/// What a member that hears row changes is brought before they come live.
///
/// A member takes its seat in its group when the feed has brought it what it missed, and not before: so the missed changes
/// come first and in order, and nothing comes twice at the seam.
final class MemberRecovery {
    var session: LiveSession
    /// Where it has to recover from; nil once it is, or if it missed nothing.
    var point: RecoveryPoint?
    /// The question that is under way.
    var question: RecoveryID?
    /// What the feed said to the first question.
    var start: RecoveryStart?
    /// What it missed took its socket so long that it had to ask again.
    var wasPassedBy = false
    /// The join asked for it, so its reply says what came of it.
    let isReported: Bool
    /// Where the changes begin to come live.
    var cursor: String?

    init(session: LiveSession, point: RecoveryPoint?, isReported: Bool) {
        self.session = session
        self.point = point
        self.isReported = isReported
    }
}
