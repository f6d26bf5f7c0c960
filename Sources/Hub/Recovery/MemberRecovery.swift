import Wire

/// How far a member that hears row changes is with what it missed.
package final class MemberRecovery {
    var session: LiveSession
    /// Where it has to recover from; nil once it is, or if it missed nothing.
    var point: RecoveryPoint?
    /// Rows that it is yet to begin with, before what comes behind them.
    var rows: FirstRows?
    /// The question that is under way.
    var question: RecoveryID?
    /// Its join said itself where it was.
    var broughtCursor = false
    /// What the feed said to the first question.
    var start: RecoveryStart?
    /// What it missed took its socket so long that it had to ask again.
    var wasPassedBy = false
    /// The join asked for it, so its reply says what came of it.
    let isReported: Bool
    /// Some of what it missed cannot be told, and no reply says so: a message has to (`CatchUp.tellOfLoss`).
    var isOwedWordOfLoss = false
    /// Where the changes begin to come live.
    var cursor: String?
    /// What has to be known before changes can reach it; nil once it is.
    var arrival: Arrival?
    /// Where the loop was when it was found out what the member missed, until it is asked for.
    var settled: LoopPosition?
    /// Its token named somebody else soon after its join: until it is known what that one missed, where it stands itself.
    var before: RecoveryPoint?
    /// Its token changed already.
    var isRenewed = false
    /// The cursor of the last change that it was sent of what it missed.
    private var sent: String?
    /// The ping that asks whether it arrived.
    private var asked: (serial: Int, cursor: String)?

    struct Arrival {
        /// Live sessions that may be dead ones of the same client, and are asked. Nil once that is decided.
        var doubts: [ClientTrace]?
        /// Since when they are, or since when it waits to be written down, in monotonic milliseconds.
        var since: Int64
    }

    init(session: LiveSession, point: RecoveryPoint?, isReported: Bool) {
        self.session = session
        self.point = point
        self.isReported = isReported
    }

    func hasSent(_ change: ChangeDelivery) {
        if !change.cursor.isEmpty { sent = change.cursor }
    }

    /// All that the rows show it was told: what comes behind them it is yet to be.
    func hasRows(upTo cursor: String) {
        rows = nil
        point = .cursor(cursor)
        sent = cursor
    }

    /// Whether changes cannot reach it yet.
    var lacksSomething: Bool { point != nil || rows != nil }

    /// Of what it missed it was told all up to here, whether it arrived or not; nil if that is where it began.
    var reached: String? { sent }

    /// It has been told what it missed, and all that came since.
    func isLevel() {
        sent = nil
        asked = nil
    }

    /// A ping follows all that was sent so far.
    func reaches(acknowledgedBy serial: Int) { asked = sent.map { (serial, $0) } }

    /// A ping was answered.
    func isAcknowledged(by serial: Int) {
        guard let asked, asked.serial == serial else { return }
        self.asked = nil
        session.hasReached(asked.cursor)
    }

    /// Why it does not go on where it was; nil where it does.
    var reason: String? {
        switch start {
        // What is yet to be told follows the rows.
        case .resumed, .rows: nil
        case .refused(let refusal): refusal.rawValue
        case nil: "The changes cannot be served now; a system message says why."
        }
    }

    /// A join's response, with what came of the recovery for clients that asked.
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
