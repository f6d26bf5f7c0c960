import Wire

/// The recovery of a member that hears row changes.
package final class MemberRecovery {
    var session: LiveSession
    /// The point to recover from; nil once recovered, or if nothing was missed.
    var point: RecoveryPoint?
    /// Initial rows still to be sent, before the changes that follow them.
    var rows: FirstRows?
    /// The open question.
    var question: RecoveryID?
    /// The join stated its own position.
    var broughtCursor = false
    /// The feed's answer to the first question.
    var start: RecoveryStart?
    /// Sending missed changes over its socket took so long that it had to ask again.
    var wasPassedBy = false
    /// The join asked to resume, so its reply reports the outcome.
    let isReported: Bool
    /// Some missed changes are lost, and no reply says so: a message has to (`CatchUp.tellOfLoss`).
    var isOwedWordOfLoss = false
    /// The cursor at which live changes begin.
    var cursor: String?
    /// The facts that must be known before changes can reach it; nil once they are.
    var arrival: Arrival?
    /// The loop's position when the member's missed changes were determined, until they are asked for.
    var settled: LoopPosition?
    /// The member's own position if its token named another user soon after the join, until that user's missed changes
    /// are known.
    var before: RecoveryPoint?
    /// Its token has changed already.
    var isRenewed = false
    /// The cursor of the last missed change that it was sent.
    private var sent: String?
    /// The ping that asks whether that change arrived.
    private var asked: (serial: Int, cursor: String)?

    struct Arrival {
        /// Live sessions, asked for a sign of life, that may be dead sockets of the same client. Nil once that is
        /// decided.
        var doubts: [ClientTrace]?
        /// When they were asked, or when it began to wait for being written down, in monotonic milliseconds.
        var since: Int64
    }

    init(session: LiveSession, point: RecoveryPoint?, isReported: Bool) {
        self.session = session
        self.point = point
        self.isReported = isReported
    }

    func recordSent(_ change: ChangeDelivery) {
        if !change.cursor.isEmpty { sent = change.cursor }
    }

    /// Records that the initial rows were sent: changes after the cursor are still to come.
    func recordRows(upTo cursor: String) {
        rows = nil
        point = .cursor(cursor)
        sent = cursor
    }

    /// Whether changes cannot reach it yet.
    var lacksSomething: Bool { point != nil || rows != nil }

    /// The cursor up to which it was sent missed changes, whether they arrived or not; nil if none were sent.
    var reached: String? { sent }

    /// Resets progress: the member was sent everything it missed, and all that came since.
    func clearProgress() {
        sent = nil
        asked = nil
    }

    /// Records that a ping follows everything sent so far.
    func recordPing(acknowledgedBy serial: Int) { asked = sent.map { (serial, $0) } }

    /// Handles the answer to a ping.
    func pingAnswered(by serial: Int) {
        guard let asked, asked.serial == serial else { return }
        self.asked = nil
        session.recordReached(asked.cursor)
    }

    /// The reason why it does not resume; nil if it does.
    var reason: String? {
        switch start {
        // Anything still to come follows the rows.
        case .resumed, .rows: nil
        case .refused(let refusal): refusal.rawValue
        case nil: "The changes cannot be served now; a system message says why."
        }
    }

    /// Returns a join's response, with the outcome of the recovery added for clients that asked.
    func adding(to response: [UInt8]) -> [UInt8] {
        guard isReported else { return response }
        var out = Array(response.dropLast())
        guard let reason else { return out + Array(",\"resumed\":true}".utf8) }
        out += ",\"resumed\":false,\"reason\":".utf8
        JSONString.encode(reason, into: &out)
        out.append(UInt8(ascii: "}"))
        return out
    }
}
