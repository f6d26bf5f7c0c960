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
    /// What has to be known before its join can be answered; nil once it is.
    var arrival: Arrival?
    /// Where the loop was when it was found out what the member missed, until it is asked for.
    var settled: LoopPosition?
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

    /// Of what it missed it was told all up to here, whether it arrived or not; nil if that is where it began.
    var reached: String? { sent }

    /// A ping follows all that was sent so far.
    func reaches(provenBy serial: Int) { asked = sent.map { (serial, $0) } }

    /// A ping was answered.
    func isProven(by serial: Int) {
        guard let asked, asked.serial == serial else { return }
        self.asked = nil
        session.hasReached(asked.cursor)
    }
}

/// Bringing members what they missed: what is asked of the feed, and what becomes of its answers.
extension Hub {
    /// Opens the session of a member that joins a group, and begins to find out what it may have missed.
    func recovery(
        of config: JoinConfig, joinRef: JSON, claims: Claims, group: ChangeGroup, on connection: Connection,
        at now: HubTime
    ) -> MemberRecovery {
        let key = RecoveryKey(claims: claims, channel: group.channel.key, subscription: group.subscription)
        let trace = trace(of: claims, joinRef: joinRef, connection, at: now)
        if let cursor = config.resumeCursor {
            let session = book.enter(key, trace, at: RecoveryPosition(point: .cursor(cursor)))
            return MemberRecovery(session: session, point: .cursor(cursor), isReported: true)
        }
        let (session, doubts) = book.enter(key, trace, here: position(of: group), at: now)
        let recovery = MemberRecovery(session: session, point: nil, isReported: config.wantsCursor)
        recovery.arrival = MemberRecovery.Arrival(doubts: doubts, since: now.monotonic)
        context.ask(doubts)
        advanceArrival(of: recovery, in: group)
        return recovery
    }

    /// What a join tells of its client.
    func trace(of claims: Claims, joinRef: JSON, _ connection: Connection, at now: HubTime) -> ClientTrace {
        ClientTrace(
            evidence: evidence(of: claims, joinRef: joinRef, connection, at: now), lifeline: lifeline(of: connection),
            at: now,
            moment: book.moment())
    }

    /// Whether a client that joins was here before.
    ///
    /// Its refs tell it where they are further on than the messages that came by this socket, each of which takes one, and
    /// where it joins at once, as clients do who come back; others may be new to the channel. Clients in browsers count
    /// their refs on, so that one that begins anew there is a new page. Others may begin anew with each socket.
    private func evidence(
        of claims: Claims, joinRef: JSON, _ connection: Connection, at now: HubTime
    ) -> ClientTrace.Evidence {
        if let number = Int(joinRef.string ?? joinRef.description), number > connection.received,
            now.monotonic - connection.began < Self.promptReturn
        {
            return .refs
        }
        return claims.subject != nil && claims.session != nil && !connection.isPage ? .signIn : .none
    }

    /// Milliseconds in which clients that come back join their channels again.
    private static let promptReturn: Int64 = 5000

    private func position(of group: ChangeGroup) -> LoopPosition {
        LoopPosition(
            mark: mark, isPastMark: passed != nil || isPassedInPart,
            isHeard: group.liveMark.map { mark > $0 } ?? false)
    }

    // MARK: Before a join is answered

    /// How long sockets have to say that they live; how long a join waits to be written down; and how long until it is
    /// refused where the list of sessions cannot be called incomplete either. In milliseconds.
    static let longestDoubt: Int64 = 1000
    private static let longestRecording: Int64 = 2000
    private static let longestArrival: Int64 = 6000
    /// How often joins that wait are looked at, in milliseconds; where thousands wait, more seldom.
    private var arrivalStep: Int64 { min(50, 5 + Int64(arrivals.count / 100)) }

    /// Goes on with an arrival, as far as it can.
    private func advanceArrival(of recovery: MemberRecovery, in group: ChangeGroup) {
        guard let arrival = recovery.arrival else { return }
        let session = recovery.session
        if let doubts = arrival.doubts {
            guard
                latest.monotonic - arrival.since >= Self.longestDoubt
                    || doubts.allSatisfy({ $0.isDecided(for: session.trace) })
            else { return }
            settle(recovery, in: group)
        }
        let waited = latest.monotonic - (recovery.arrival?.since ?? 0)
        if book.isRecorded(session) || waited >= Self.longestRecording && book.mayGoUnrecorded(session) {
            recovery.arrival = nil
        }
    }

    private func settle(_ recovery: MemberRecovery, in group: ChangeGroup) {
        let here = position(of: group)
        let found = book.settle(recovery.session, here: here, at: latest)
        // Whoever wants to resume later has to be told where it is now, which the feed knows.
        recovery.point = recovery.isReported ? found ?? .mark(mark) : found
        recovery.settled = here
        recovery.arrival = MemberRecovery.Arrival(doubts: nil, since: latest.monotonic)
    }

    /// What is handed on while a join waits is missed, too, by who lacked nothing until then.
    private func noteMissedMeanwhile(_ recovery: MemberRecovery, in group: ChangeGroup) {
        guard let settled = recovery.settled else { return }
        recovery.settled = nil
        if recovery.point == nil, book.mayMissMore(recovery.session), settled != position(of: group) {
            recovery.point = .mark(settled.mark)
        }
    }

    /// Sees to it that a join that waits is answered.
    func awaitArrival(of membership: Membership) {
        arrivals.append(membership)
        context.schedule(.arrivals, at: latest.monotonic + arrivalStep)
    }

    /// Answers joins for which nothing has to be waited for any more.
    func settleArrivals() {
        guard !arrivals.isEmpty else { return }
        let waiting = arrivals
        arrivals = []
        for membership in waiting where membership.join.needs([.session, .history]) {
            if let recovery = membership.recovery, recovery.arrival != nil {
                guard let group = membership.group else { continue }
                advanceArrival(of: recovery, in: group)
            }
            membership.history?.decide(at: latest, longest: Self.longestDoubt)
            if let arrival = membership.recovery?.arrival, arrival.doubts == nil,
                latest.monotonic - arrival.since >= Self.longestArrival
            {
                handle(.failed(.session, .databaseUnavailable), of: membership)
                continue
            }
            let isWaiting = membership.recovery?.arrival != nil || membership.history?.doubts != nil
            if isWaiting { awaitArrival(of: membership) }
            if membership.recovery?.arrival == nil { handle(.met(.session), of: membership) }
            if membership.history?.doubts == nil { handle(.met(.history), of: membership) }
        }
    }

    /// Asks for what the member missed, once its group is live.
    func askForMissed(by membership: Membership) {
        guard let recovery = membership.recovery, let group = membership.group, group.state == .live,
            recovery.arrival == nil
        else { return }
        noteMissedMeanwhile(recovery, in: group)
        guard let point = recovery.point, recovery.question == nil else { return }
        let id = RecoveryID(loop: loop, serial: context.nextSerial())
        recovery.question = id
        recoveries[id] = membership
        let question = RecoveryQuestion(group: group.id, claims: membership.claims, from: point)
        actions.append(.recover(id, question))
    }

    /// Seats a member whose join is answered, unless it has to be brought first what it missed.
    func takeSeatOrWait(_ membership: Membership) {
        guard let group = membership.group, membership.recovery?.arrival == nil else { return }
        guard membership.recovery?.point != nil else { return seatInGroup(membership) }
        askForMissed(by: membership)
        guard membership.recovery?.question == nil else { return }
        group.outstanding.append(membership)
        systemState(of: group, to: membership)
    }

    /// A member whose claims changed. What was judged for the old ones and is on its way does not reach it any more, so it
    /// recovers from what was passed on so far: nothing before that comes again, unless something waits for a policy. And
    /// it is somebody else to the next process, so that it has to be written down like one that joins.
    func startAnew(_ membership: Membership, wasSeated: Bool, in group: ChangeGroup) {
        guard let recovery = membership.recovery else { return }
        if recovery.arrival?.doubts != nil { settle(recovery, in: group) }
        abandonQuestion(of: recovery)
        if wasSeated {
            recovery.point = passed.map { .cursor($0) } ?? .mark(mark)
        } else if recovery.point != nil, let reached = recovery.reached {
            recovery.point = .cursor(reached)
        }
        let old = recovery.session
        let key = RecoveryKey(
            claims: membership.claims, channel: group.channel.key, subscription: group.subscription)
        let standing = old.standing(at: latest.monotonic)
        guard key != old.key else { return old.begins(at: standing) }
        book.remove(old)
        recovery.session = book.enter(
            key, ClientTrace(renewing: old.trace, at: latest, moment: book.moment()), at: standing)
        guard recovery.arrival == nil, !book.isRecorded(recovery.session) else { return }
        recovery.arrival = MemberRecovery.Arrival(doubts: nil, since: latest.monotonic)
        awaitArrival(of: membership)
    }

    /// Gives up a question that is under way.
    func abandonQuestion(of recovery: MemberRecovery) {
        guard let id = recovery.question else { return }
        recovery.question = nil
        recoveries[id] = nil
        actions.append(.abandon(id))
    }

    /// Whose recovery it is; nil where the member left or asked anew.
    package func slot(of id: RecoveryID) -> Slot? { recoveries[id]?.slot }

    /// The feed's next step. One for a member that left, or asked anew, changes nothing.
    package func recovery(_ id: RecoveryID, _ step: RecoveryStep) {
        guard let membership = recoveries[id], !membership.join.hasEnded, let recovery = membership.recovery else {
            return
        }
        switch step {
        case .began(let start):
            // Too late to say so in the reply; the reply to the next join will.
            if case .refused = start, recovery.wasPassedBy { return expel(membership, .databaseUnavailable) }
            if recovery.start == nil {
                recovery.start = start
                counters.recoveries[start.result, default: 0] += 1
            }
            recoveryIsKnown(of: membership)
        case .changes(let changes):
            for change in changes {
                send(change, to: membership)
                recovery.hasSent(change)
            }
        case .caughtUp(let cursor):
            recoveries[id] = nil
            recovery.question = nil
            recovery.point = nil
            recovery.cursor = cursor
            seatInGroup(membership)
            if let ping = proofPing(for: membership.slot) { actions.append(.send(ping, to: membership.slot)) }
        case .passedBy(let cursor):
            recoveries[id] = nil
            recovery.question = nil
            recovery.point = .cursor(cursor)
            recovery.wasPassedBy = true
            askForMissed(by: membership)
        case .unavailable: breakOff(id, recovery, as: "unavailable", .databaseUnavailable, of: membership)
        case .undecided: breakOff(id, recovery, as: "undecided", .policyFailed, of: membership)
        }
    }

    /// A recovery cannot go on: its client has to join again.
    private func breakOff(
        _ id: RecoveryID, _ recovery: MemberRecovery, as result: String, _ refusal: Refusal, of membership: Membership
    ) {
        counters.recoveries[result, default: 0] += 1
        recoveries[id] = nil
        recovery.question = nil
        handle(.recoveryFailed(refusal), of: membership)
    }

    private func send(_ change: ChangeDelivery, to membership: Membership) {
        guard let group = membership.group else { return }
        let (event, payload) = Self.frame(of: change, isLegacy: group.subscription.isLegacy)
        let frame = membership.frames.push(event, payload: payload)
        actions.append(.send(frame, to: membership.slot, .change))
    }

    /// Ends the session of a membership that is taken out of its channel.
    func endSession(of membership: Membership, _ end: MembershipEnd) {
        guard let recovery = membership.recovery else { return }
        abandonQuestion(of: recovery)
        switch end {
        case .left: book.leave(recovery.session, at: latest)
        case .unloaded: book.remove(recovery.session)
        case .replaced: book.replace(recovery.session, at: latest)
        case .lost, .revoked: book.lose(recovery.session, at: latest)
        }
    }

    /// The join is being answered. Where that took seconds, the client may not care for the answer any more.
    func joinIsAnswered(_ recovery: MemberRecovery) {
        let session = recovery.session
        let isLate = latest.monotonic - session.trace.began > HubContext.promptness || session.trace.began < context.lateUntil
        if isLate { session.isDoubted(until: latest.monotonic + book.patience) }
    }

    /// A join's response, with what came of its recovery for clients that asked.
    static func response(_ response: [UInt8], _ recovery: MemberRecovery?) -> [UInt8] {
        guard let recovery, recovery.isReported else { return response }
        var out = Array(response.dropLast())
        switch recovery.start {
        case .resumed: out += ",\"resumed\":true}".utf8
        case .refused(let refusal):
            out += ",\"resumed\":false,\"reason\":".utf8
            JSONString.encode(refusal.rawValue, into: &out)
            out.append(UInt8(ascii: "}"))
        case nil:
            out += ",\"resumed\":false,\"reason\":".utf8
            JSONString.encode("The changes cannot be served now; a system message says why.", into: &out)
            out.append(UInt8(ascii: "}"))
        }
        return out
    }
}
