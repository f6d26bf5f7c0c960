package import Wire

/// Catch-up: members that hear row changes are first sent those they missed.
///
/// A member hears its group live only once the feed has brought it what it missed: so missed changes come first and in
/// order, and nothing comes twice at the seam. `SessionRegistry` knows which clients may have missed something;
/// `MemberRecovery` keeps track of what one member still lacks.
package struct CatchUp {
    let sessions: SessionRegistry
    /// Members whose missed changes the feed is reading.
    private var questions: [RecoveryID: Membership] = [:]
    /// Members waiting for signs of life from other sockets, or for their session to be written down.
    private var arrivals: [Membership] = []

    package init(sessions: SessionRegistry) {
        self.sessions = sessions
    }

    // MARK: Joins

    /// Opens the session of a member that joins a group, and starts to determine what it may have missed.
    package func openSession(
        _ config: JoinConfig, joinRef: JSON, claims: Claims, in group: ChangeGroup, on connection: Connection,
        _ progress: FeedProgress, _ hub: inout HubContext
    ) -> MemberRecovery {
        let key = RecoveryKey(claims: claims, channel: group.channel.key, subscription: group.subscription)
        let trace = trace(of: claims, joinRef: joinRef, connection, progress, &hub)
        guard connection.reader == nil else {
            // A reader states its own position, or starts now.
            let point = config.resumeCursor.map { RecoveryPoint.cursor($0) } ?? .mark(progress.mark)
            let session = LiveSession(key: key, trace: trace, from: point)
            return MemberRecovery(session: session, point: point, isReported: true)
        }
        if let cursor = config.resumeCursor {
            let session = sessions.openSession(key, trace, at: RecoveryPosition(point: .cursor(cursor)))
            return MemberRecovery(session: session, point: .cursor(cursor), isReported: true)
        }
        let (session, doubts) = sessions.openSession(key, trace, here: progress.position(in: group), at: hub.now)
        let recovery = MemberRecovery(session: session, point: nil, isReported: config.wantsCursor)
        recovery.arrival = MemberRecovery.Arrival(doubts: doubts, since: hub.now.monotonic)
        hub.pingDoubts(doubts)
        advanceArrival(recovery, in: group, progress, &hub)
        return recovery
    }

    // MARK: Waiting joins

    /// Milliseconds that sockets have to show a sign of life; that a join waits for its session to be written down; and
    /// after which it is refused if the list of sessions cannot be declared incomplete either.
    static let longestDoubt: Int64 = 1000
    private static let longestRecording: Int64 = 2000
    private static let longestArrival: Int64 = 6000
    /// Milliseconds between checks of waiting joins; longer if thousands are waiting.
    private var arrivalStep: Int64 { min(50, 5 + Int64(arrivals.count / 100)) }

    /// Schedules a check of a waiting member.
    package mutating func awaitArrival(of membership: Membership, _ hub: inout HubContext) {
        arrivals.append(membership)
        hub.scheduleDuty(.arrivals, at: hub.now.monotonic + arrivalStep)
    }

    /// Checks waiting members because a socket has shown a sign of life: once for all that do so in this turn.
    func lookAtArrivals(_ hub: inout HubContext) {
        if !arrivals.isEmpty { hub.scheduleDuty(.arrivals, at: hub.now.monotonic) }
    }

    /// Removes and returns the waiting members. Those that must keep waiting must be handed back (`awaitArrival`).
    package mutating func takeArrivals() -> [Membership] {
        defer { arrivals = [] }
        return arrivals
    }

    /// Continues a waiting member's join as far as possible.
    ///
    /// - Returns: the event for its join machine; nil while it must wait.
    package func advanceArrival(
        of membership: Membership, _ progress: FeedProgress, _ hub: inout HubContext
    ) -> JoinMachine.Event? {
        guard let recovery = membership.recovery, let group = membership.group else { return .met(.session) }
        advanceArrival(recovery, in: group, progress, &hub)
        guard let arrival = recovery.arrival else { return .met(.session) }
        guard arrival.doubts == nil, hub.now.monotonic - arrival.since >= Self.longestArrival else { return nil }
        return .failed(.session, .databaseUnavailable)
    }

    private func advanceArrival(
        _ recovery: MemberRecovery, in group: ChangeGroup, _ progress: FeedProgress, _ hub: inout HubContext
    ) {
        guard let arrival = recovery.arrival else { return }
        let session = recovery.session
        if let doubts = arrival.doubts {
            guard
                hub.now.monotonic - arrival.since >= Self.longestDoubt
                    || doubts.allSatisfy({ $0.isDecided(for: session.trace) })
            else { return }
            settleSession(recovery, in: group, progress, &hub)
        }
        let waited = hub.now.monotonic - (recovery.arrival?.since ?? 0)
        if sessions.isRecorded(session, after: waited)
            || waited >= Self.longestRecording && sessions.mayGoUnrecorded(session)
        {
            recovery.arrival = nil
            comesFrom(sessions.elsewhere(session), recovery, progress)
        }
    }

    /// Moves a member's start back to where other hubs left clients that look like it.
    private func comesFrom(
        _ others: [SessionRegistry.Elsewhere], _ recovery: MemberRecovery, _ progress: FeedProgress
    ) {
        guard !others.isEmpty else { return }
        recovery.point = sessions.beginSession(
            recovery.session, at: recovery.point, andNoLaterThan: others.map(\.point))
        recovery.settled = nil
    }

    private func settleSession(
        _ recovery: MemberRecovery, in group: ChangeGroup, _ progress: FeedProgress, _ hub: inout HubContext
    ) {
        let here = progress.position(in: group)
        let before = recovery.before
        recovery.before = nil
        let found = sessions.settleSession(recovery.session, here: here, noLaterThan: before, at: hub.now)
        recovery.arrival = MemberRecovery.Arrival(doubts: nil, since: hub.now.monotonic)
        if let before {
            // The changes that it was in the middle of recovering are sent as well.
            if let found { recovery.point = .earliest(of: [found, before]) }
            return
        }
        // A client that wants to resume later must be told its current position, which the feed knows.
        recovery.point = recovery.isReported ? found ?? recovery.session.origin.point : found
        recovery.settled = here
    }

    // MARK: Missed changes

    /// Asks for the changes that the member missed, once its group is live.
    package mutating func askForMissed(
        by membership: Membership, _ progress: FeedProgress, _ hub: inout HubContext
    ) {
        guard let recovery = membership.recovery, let group = membership.group, group.state == .live,
            recovery.arrival == nil, membership.lapse == nil
        else { return }
        noteMissedMeanwhile(recovery, in: group, progress)
        guard recovery.lacksSomething, recovery.question == nil else { return }
        let id = RecoveryID(loop: hub.loop, serial: hub.nextSerial())
        recovery.question = id
        questions[id] = membership
        let question = RecoveryQuestion(
            group: group.id, claims: membership.claims, from: recovery.point ?? .mark(progress.mark),
            rows: recovery.rows,
            isNew: recovery.point == nil || membership.connection.reader != nil && !recovery.broughtCursor)
        hub.actions.append(.recover(id, question))
    }

    /// Counts what is passed on while a join waits as missed, for a member that lacked nothing until then.
    private func noteMissedMeanwhile(_ recovery: MemberRecovery, in group: ChangeGroup, _ progress: FeedProgress) {
        guard let settled = recovery.settled else { return }
        recovery.settled = nil
        if recovery.point == nil, sessions.mayMissMore(recovery.session), settled != progress.position(in: group) {
            recovery.point = .mark(settled.mark)
        }
    }

    /// Starts the live changes of a member whose join is answered, unless it must first be sent what it missed.
    package mutating func startOrWait(
        _ membership: Membership, _ rows: RowSubscriptions, _ hub: inout HubContext
    ) {
        guard let group = membership.group, membership.recovery?.arrival == nil, membership.lapse == nil else { return }
        guard membership.recovery?.lacksSomething == true else { return startChanges(membership, rows, &hub) }
        askForMissed(by: membership, rows.progress, &hub)
        guard membership.recovery?.question == nil else { return }
        group.outstanding.addMember(membership)
        sendState(of: group, to: membership, &hub)
    }

    private func startChanges(_ membership: Membership, _ rows: RowSubscriptions, _ hub: inout HubContext) {
        guard let group = membership.group, rows.startChanges(membership) else { return }
        membership.rows?.hearsSince = sessions.moment()
        membership.recovery?.session.startLive(acknowledgedFrom: membership.connection.nextPing)
        sendState(of: group, to: membership, &hub)
        for complaint in membership.rows?.principal.complaints(at: hub.now.monotonic) ?? [] {
            hub.sendComplaint(complaint, to: membership)
        }
    }

    /// The consequence of the feed's answer to a member's question.
    package enum Outcome {
        /// The feed has said whether the missed changes can be recovered.
        case isKnown
        /// They cannot be recovered, or not completely: the client has to rejoin.
        case failed(Refusal)
    }

    /// Returns the member that a recovery belongs to; nil if it left or asked again.
    package func recoveringMember(_ id: RecoveryID) -> Membership? { questions[id] }

    /// Handles the feed's next step. A step for a member that left or asked again has no effect.
    package mutating func receiveStep(
        _ step: RecoveryStep, of id: RecoveryID, _ rows: RowSubscriptions, _ hub: inout HubContext
    ) -> (Membership, Outcome)? {
        guard let membership = questions[id], !membership.join.hasEnded, let recovery = membership.recovery else {
            return nil
        }
        switch step {
        case .began(let start):
            // Too late to say so in the reply; the reply to the next join will.
            if case .refused = start, recovery.wasPassedBy { return (membership, .failed(.databaseUnavailable)) }
            if case .resumed = start { recovery.rows = recovery.rows?.fresh }
            if case .refused = start, recovery.rows == nil, !recovery.isReported || membership.join.isJoined {
                recovery.isOwedWordOfLoss = true
            }
            if recovery.start == nil {
                recovery.start = start
                hub.counters.recoveries[start.result, default: 0] += 1
            }
            return (membership, .isKnown)
        case .changes(let changes):
            for change in changes {
                sendChange(change, to: membership, &hub)
                recovery.recordSent(change)
            }
        case .rowsBegin: hub.announceRows(to: membership)
        case .rowsEnd(let report):
            recovery.recordRows(upTo: report.cursor)
            membership.movePosition { $0.rows = report.cursor }
            hub.reportRows(report, to: membership)
        case .changesLost:
            recovery.isOwedWordOfLoss = true
            tellOfLoss(membership, &hub)
        case .caughtUp(let cursor):
            endQuestion(of: recovery)
            recovery.point = nil
            recovery.cursor = cursor
            membership.movePosition { $0.rows = cursor }
            startChanges(membership, rows, &hub)
            hub.sendPositionAlone(to: membership.connection)
            if let ping = makePing(membership.connection, rows.progress, &hub) { hub.sendFrame(ping, to: membership) }
        case .passedBy(let cursor):
            endQuestion(of: recovery)
            recovery.point = .cursor(cursor)
            recovery.wasPassedBy = true
            askForMissed(by: membership, rows.progress, &hub)
        case .unavailable:
            hub.counters.recoveries["unavailable", default: 0] += 1
            endQuestion(of: recovery)
            return (membership, .failed(.databaseUnavailable))
        case .undecided:
            hub.counters.recoveries["undecided", default: 0] += 1
            endQuestion(of: recovery)
            return (membership, .failed(.policyFailed))
        }
        return nil
    }

    private func sendChange(_ change: ChangeDelivery, to membership: Membership, _ hub: inout HubContext) {
        guard let group = membership.group else { return }
        let (event, payload) = change.event(isLegacy: group.subscription.isLegacy)
        membership.movePosition { if !change.cursor.isEmpty { $0.rows = change.cursor } }
        let frames = membership.channel.frames(membership.version, isBehindPosition: true)
        hub.sendBehindPosition(frames.push(event, payload: payload), to: membership, .change)
    }

    private mutating func endQuestion(of recovery: MemberRecovery) {
        guard let id = recovery.question else { return }
        recovery.question = nil
        questions[id] = nil
    }

    /// Abandons an open question.
    private mutating func abandonQuestion(of recovery: MemberRecovery, _ hub: inout HubContext) {
        guard let id = recovery.question else { return }
        endQuestion(of: recovery)
        hub.actions.append(.abandon(id))
    }

    // MARK: Messages to members

    func sendState(of group: ChangeGroup, to membership: Membership, _ hub: inout HubContext) {
        guard !membership.isSpared(group) else { return }
        // A client that resumes by cursors gets one now, even if no change ever comes.
        let cursor = membership.recovery?.isReported == true ? membership.recovery?.cursor : nil
        if group.sendState(to: membership, cursor: cursor, &hub) { mayBeIgnored(by: membership, &hub) }
    }

    func sendComplaints(of group: ChangeGroup, to membership: Membership, _ hub: inout HubContext) {
        guard !membership.isSpared(group) else { return }
        if group.sendComplaints(to: membership, &hub) { mayBeIgnored(by: membership, &hub) }
    }

    /// Tells a client that changes are lost if no reply does: after the reply, and before later missed changes, so that
    /// a client that answers a later ping has read it. It is not an error: an error would make the Kotlin client deaf
    /// and end the channel in the Python client, and another join would improve nothing.
    func tellOfLoss(_ membership: Membership, _ hub: inout HubContext) {
        guard let recovery = membership.recovery, recovery.isOwedWordOfLoss, membership.join.isJoined else { return }
        recovery.isOwedWordOfLoss = false
        hub.sendSystemMessage(membership, extension: "postgres_changes", ok: true, message: Refusal.changesLost.reason)
    }

    private func mayBeIgnored(by membership: Membership, _ hub: inout HubContext) {
        membership.recovery?.session.startIgnoring(until: hub.now.monotonic + sessions.patience)
    }

    /// Doubts the session if answering its join took seconds, because the client may have given the join up.
    func joinIsAnswered(_ recovery: MemberRecovery, _ hub: inout HubContext) {
        let session = recovery.session
        let isLate =
            hub.now.monotonic - session.trace.began > HubContext.promptness || session.trace.began < hub.lateUntil
        if isLate { session.startDoubt(until: hub.now.monotonic + sessions.patience) }
    }

    // MARK: Changes of tokens, and ends

    /// Restarts the recovery of a member whose claims changed. Changes judged for the old claims and on their way no
    /// longer reach it, so it recovers from what was passed on so far: nothing before that comes again, unless
    /// something waits for a policy. To the next process it is a different client, so it has to be written down like
    /// one that joins.
    package mutating func startAnew(
        _ membership: Membership, wasHearing: Bool, _ progress: FeedProgress, _ hub: inout HubContext
    ) {
        guard let recovery = membership.recovery, let group = membership.group else { return }
        if recovery.arrival?.doubts != nil { settleSession(recovery, in: group, progress, &hub) }
        abandonQuestion(of: recovery, &hub)
        if wasHearing {
            recovery.point = progress.point
        } else if recovery.point != nil, let reached = recovery.reached {
            recovery.point = .cursor(reached)
        }
        let old = recovery.session
        let key = RecoveryKey(
            claims: membership.claims, channel: group.channel.key, subscription: group.subscription)
        let position = old.position(at: hub.now.monotonic)
        guard key != old.key else { return old.resetStart(at: position) }
        if mayBeReturning(recovery, old, &hub), key.hasSubject {
            sessions.remove(old)
            return arriveAnew(membership, recovery, as: key, position.point, in: group, progress, &hub)
        }
        sessions.remove(old)
        recovery.session = sessions.openSession(
            key, ClientTrace(renewing: old.trace, at: hub.now, moment: sessions.moment()), at: position)
        guard recovery.arrival == nil, !sessions.isRecorded(recovery.session) else { return }
        recovery.arrival = MemberRecovery.Arrival(doubts: nil, since: hub.now.monotonic)
        awaitArrival(of: membership, &hub)
    }

    /// Milliseconds after a join within which its first new token counts as the join's. Some clients join without one,
    /// and send it when the join is answered.
    private static let firstToken: Int64 = 10_000

    private func mayBeReturning(_ recovery: MemberRecovery, _ old: LiveSession, _ hub: inout HubContext) -> Bool {
        defer { recovery.isRenewed = true }
        // A client that states its own position is sent what follows that.
        if case .cursor = old.origin.point { return false }
        return !recovery.isRenewed && hub.now.monotonic - old.trace.began < Self.firstToken
    }

    /// Determines, as at a join, what a member missed whose token identifies its user only now.
    private mutating func arriveAnew(
        _ membership: Membership, _ recovery: MemberRecovery, as key: RecoveryKey, _ before: RecoveryPoint,
        in group: ChangeGroup, _ progress: FeedProgress, _ hub: inout HubContext
    ) {
        let (claims, connection, old) = (membership.claims, membership.connection, recovery.session.trace)
        let isKnown = claims.subject != nil && claims.session != nil && !connection.isPage
        let trace = ClientTrace(
            evidence: old.evidence == .refs ? .refs : isKnown ? .signIn : .none, ref: old.ref,
            acknowledged: old.acknowledged, at: hub.now, moment: sessions.moment())
        let (session, doubts) = sessions.openSession(key, trace, here: progress.position(in: group), at: hub.now)
        recovery.session = session
        recovery.before = before
        recovery.arrival = MemberRecovery.Arrival(doubts: doubts, since: hub.now.monotonic)
        hub.pingDoubts(doubts)
        advanceArrival(recovery, in: group, progress, &hub)
        if recovery.arrival != nil { awaitArrival(of: membership, &hub) }
    }

    /// Suspends a member whose token has expired: it is owed everything from now on, whatever its socket acknowledges.
    mutating func lapseMember(
        _ membership: Membership, wasHearing: Bool, _ progress: FeedProgress, _ hub: inout HubContext
    ) {
        guard let recovery = membership.recovery else { return }
        abandonQuestion(of: recovery, &hub)
        recovery.session.resetStart(at: recovery.session.position(at: hub.now.monotonic))
        if wasHearing {
            recovery.point = progress.point
            recovery.clearProgress()
        } else if recovery.point != nil, let reached = recovery.reached {
            recovery.point = .cursor(reached)
        }
    }

    /// Ends the session of a membership that is removed from its channel.
    package mutating func endSession(_ membership: Membership, _ end: MembershipEnd, _ hub: inout HubContext) {
        guard let recovery = membership.recovery else { return }
        abandonQuestion(of: recovery, &hub)
        guard membership.connection.reader == nil else { return }
        switch end {
        case .left: sessions.leaveSession(recovery.session, at: hub.now)
        case .unloaded: sessions.unloadSession(recovery.session, goneAt: membership.connection.lastRef, at: hub.now)
        case .replaced: sessions.replaceSession(recovery.session, at: hub.now)
        case .lost, .revoked: sessions.loseSession(recovery.session, at: hub.now)
        }
    }
}
