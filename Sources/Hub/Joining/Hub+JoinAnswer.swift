import Wire

/// Answering joins: the events that joins wait for, from the policies, the feed and other sockets, and the consequences
/// that the join's machine draws from them (wire-protocol A4).
extension Hub {
    package var openQuestions: [AuthorizationID] { Array(authorization.questions.keys) }
    package var groupCount: Int { rows.groups.count }
    /// The total length of the lists of members waiting for the feed.
    package var placesOfWaiting: Int { rows.groups.values.reduce(0) { $0 + $1.waiting.count } }

    // MARK: Events that joins wait for

    /// Handles the authority's answer about a join, a new token or a write.
    package func receiveAuthorization(_ id: AuthorizationID, is outcome: AuthorizationOutcome) {
        guard let (membership, decision) = authorization.receiveAnswer(outcome, to: id, &context) else { return }
        switch decision {
        case .reading(let event): handleEvent(event, of: membership)
        case .renewed(let claims): applyRenewal(claims, of: membership)
        case .revoked: expelMember(membership, .readRevoked(topic: String(membership.channel.key.name)), .revoked)
        case .unknown: comeBack(membership)
        case .waits: break
        case .writes: releaseWrites(of: membership)
        }
    }

    /// Handles the feed's word on a subscription: the first one, and every change (a table is watched, dropped,
    /// altered).
    package func changeSubscription(_ id: ChangeGroupID, is outcome: ChangeSubscriptionOutcome) {
        guard let group = rows.groups[id] else { return }
        switch group.receiveOutcome(outcome, at: rows.progress.mark) {
        case .nothing: break
        case .state:
            for one in rows.subscribers(of: group, &context) { catchUp.sendState(of: group, to: one, &context) }
        case .complaints:
            for one in rows.subscribers(of: group, &context) { catchUp.sendComplaints(of: group, to: one, &context) }
        case .unavailable:
            // Without a database nothing can be promised: clients are told to try again.
            for membership in group.waiting.members(of: group) where membership.changesWait == nil {
                handleEvent(.failed(.subscription, .databaseUnavailable), of: membership)
            }
            return
        }
        for membership in group.waiting.takeAll() where membership.isIn(group) {
            handleEvent(.met(.subscription), of: membership)
        }
        guard group.state == .live else { return }
        for membership in group.outstanding.takeAll() where membership.isIn(group) {
            catchUp.askForMissed(by: membership, rows.progress, &context)
        }
    }

    /// Returns the member that a recovery belongs to; nil if it left or asked again.
    package func slot(of id: RecoveryID) -> Slot? { catchUp.recoveringMember(id)?.slot }

    /// Handles the feed's next step of a recovery. A step for a member that left or asked again has no effect.
    package func receiveRecovery(_ id: RecoveryID, _ step: RecoveryStep) {
        let member = receipts.isNoting ? catchUp.recoveringMember(id) : nil
        let outcome = catchUp.receiveStep(step, of: id, rows, &context)
        if case .changes(let changes) = step, let member {
            for change in changes {
                receipts.recordMissed(change, to: member, at: catchUp.sessions.moment(), context.now.monotonic)
            }
        }
        guard let (membership, outcome) = outcome else { return }
        switch outcome {
        case .isKnown:
            recoveryIsKnown(of: membership)
            catchUp.tellOfLoss(membership, &context)
        case .failed(let refusal): handleEvent(.recoveryFailed(refusal), of: membership)
        }
    }

    /// Continues joins that no longer have to wait for other sockets or for their session to be written down.
    func settleArrivals() {
        for membership in catchUp.takeArrivals() where membership.join.needs([.session, .history]) {
            let session = catchUp.advanceArrival(of: membership, rows.progress, &context)
            membership.history?.endDoubts(at: context.now, longest: CatchUp.longestDoubt)
            if let session { handleEvent(session, of: membership) }
            if membership.history?.doubts == nil { handleEvent(.met(.history), of: membership) }
            if membership.join.needs([.session, .history]) { catchUp.awaitArrival(of: membership, &context) }
        }
    }

    // MARK: The answer

    /// Passes an event to a member's join machine and performs the action that results.
    func handleEvent(_ event: JoinMachine.Event, of membership: Membership) {
        switch membership.join.handleEvent(event) {
        case nil: break
        case .findMissed:
            if let refusal = membership.faultOfWait { return handleEvent(.recoveryFailed(refusal), of: membership) }
            catchUp.askForMissed(by: membership, rows.progress, &context)
            // The answer says whether the session resumed, and clients accept no changes before the answer.
            if membership.recovery?.question == nil { recoveryIsKnown(of: membership) }
        case .answer: answerJoin(of: membership)
        case .resumeRowChanges: catchUp.startOrWait(membership, rows, &context)
        case .refuse(let refusal): refuseJoin(of: membership, refusal)
        case .expel(.databaseUnavailable) where isForWantOfPostgres(event, of: membership): comeBack(membership)
        case .expel(let refusal): expelMember(membership, refusal)
        }
    }

    /// Whether a member's row changes cannot go on because Postgres is away, which its next join would find as well.
    private func isForWantOfPostgres(_ event: JoinMachine.Event, of membership: Membership) -> Bool {
        guard membership.connection.reader == nil else { return false }
        return switch event {
        case .recoveryFailed: membership.recovery?.wasPassedBy != true
        case .failed(let need, _): need == .subscription
        default: false
        }
    }

    /// Continues a join once everything its answer says about missed changes is known.
    func recoveryIsKnown(of membership: Membership) {
        let isWhole = membership.grants?.replay?.overflowed != true
        handleEvent(isWhole ? .recoveryIsKnown : .replayOverflowed, of: membership)
    }

    /// Answers a join and lets the member in.
    private func answerJoin(of membership: Membership) {
        guard let pending = membership.pending else { return }
        let missed = missedMessages(by: membership)
        if membership.connection.reader == nil {
            let reply = membership.frames.reply(
                joinRef: membership.joinRef, ref: pending.ref, ok: true,
                response: History.response(
                    membership.recovery?.adding(to: pending.response) ?? pending.response, membership, missed))
            actions.append(.send(reply, to: membership.slot))
        } else {
            recordVerdict(verdict(on: membership, missed), on: membership.channel.key, of: membership.connection)
        }

        counters.joins += 1
        membership.pending = nil
        beginFirstMoment(of: membership, pending)
        happenings?.channelJoined(membership.channel.key, at: context.now)
        if let recovery = membership.recovery { catchUp.joinIsAnswered(recovery, &context) }
        if let grants = membership.grants { authorization.sendReplay(grants, to: membership, &context) }
        if membership.mayRead(.broadcast) { letHear(membership, after: missed) }
        catchUp.startOrWait(membership, rows, &context)
        if pending.wantsReplicationReady { rows.announceReplication(to: membership, &context) }
        if membership.connection.reader == nil, presence.resumePresence(membership, &context) { hearOthers() }
        if pending.wantsPresence, membership.mayRead(.presence) { presence.showList(to: membership, &context) }
        if pending.wantsOccupancy, membership.mayRead(.presence) {
            presence.showOccupancy(to: membership, &context)
        }
        if membership.mayRead(.broadcast), membership.connection.reader?.event == nil {
            typing.showTyping(to: membership, &context)
        }
        streams.addMember(membership, &context)
        summaries.recordJoin(membership)
        releasePresence(in: pending, of: membership)
        releaseWrites(of: membership)
    }

    /// Refuses a join.
    ///
    /// A join that may be a repeated one is not refused because Postgres is away: the Dart client never tries again
    /// after that, and the Kotlin client reads nothing for half a minute. Its socket is closed instead, and all clients
    /// recover from that; while they may not come in yet, they are refused at the upgrade.
    private func refuseJoin(of membership: Membership, _ refusal: Refusal) {
        guard let pending = membership.pending else { return }
        counters.joinsRefused += 1
        context.reportFailure(JoinFailure(refusal), on: membership.slot)
        guard membership.connection.reader == nil else { return closeReaderChannel(membership, refusal, .lost) }
        if case .databaseUnavailable = refusal, membership.connection.isToRejoin {
            actions.append(.close(membership.slot, .serviceRestart, reason: Self.comeBackReason))
        } else {
            context.refuseJoin(pending.ref, of: membership, refusal)
        }
        refuseHeld(of: membership, refusal)
        removeMember(membership)
    }

    private static let comeBackReason: StaticString = "come back"

    /// Closes the socket of a joined member because without Postgres it is unknown what it may hear, or what it missed.
    /// If only its channel ended, its rejoin would be refused next (`refuseJoin`).
    func comeBack(_ membership: Membership) {
        authorization.refuseHeld(of: membership, .databaseUnavailable, &context)
        actions.append(.close(membership.slot, .serviceRestart, reason: Self.comeBackReason))
        removeMember(membership, .lost)
    }

    /// Returns the broadcasts missed by a member that is about to hear them; nil if it did not ask for history.
    func missedMessages(by membership: Membership) -> HistoryAnswer? {
        guard membership.history?.isOwedAnAnswer == true, membership.mayRead(.broadcast) else { return nil }
        // Pass news on to the other members first, so that this loop is at one position for all of them.
        passOnNews(in: membership.channel)
        return history.answerMember(membership, &context)
    }

    /// Lets a member hear the channel's broadcasts, after sending what it missed.
    func letHear(_ membership: Membership, after missed: HistoryAnswer?) {
        membership.hearsBroadcastsSince = catchUp.sessions.moment()
        if history.letHear(membership, after: missed, &context) { return }
        membership.memberIndex = membership.channel.members.addSlot(membership.slot, membership.version)
    }
}
