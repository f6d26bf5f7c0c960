import Hub
import Wire

/// The steps of an activity when it is due.
extension LiveActivity {
    /// The time of the next `step` that has something to do, in monotonic milliseconds.
    func due(_ rules: ActivityRules) -> Int64 {
        if let overSince { return overSince }
        let end = ending == nil ? endsAt : forgetAt
        return debounceDue(rules).map { min($0, end) } ?? end
    }

    private func debounceDue(_ rules: ActivityRules) -> Int64? {
        guard let debounce else { return nil }
        let due = debounce.due(rules)
        guard isAway else { return due }
        guard inFlight == nil else { return nil }
        let isPatient = alert == nil && ending == nil
        let spaced = isPatient ? lastPushAt.map { $0 + rules.quiet } : nil
        return max(due, retryAt ?? due, spaced ?? due)
    }

    /// Does what is due: shows or pushes the latest state, or ends the activity.
    ///
    /// - Returns: the owner's action; nil if there is none.
    mutating func step(
        at now: HubTime, _ rules: ActivityRules, _ statistics: inout ActivityStatistics
    ) -> ActivityAction? {
        if isOver || now.monotonic >= forgetAt {
            overSince = overSince ?? now.monotonic
            return .ended(id: id)
        }
        if now.monotonic >= endsAt { end(.byHub, at: now) }
        guard let due = debounceDue(rules), now.monotonic >= due else { return nil }
        debounce = nil
        return isAway ? push(at: now, rules, &statistics) : show(at: now, rules, &statistics)
    }

    private var event: ActivityEvent { ending == nil ? .update : .end }

    /// The content-state that the phone ought to show; nil if it is not known.
    private func state(version: Int, timestamp: Int64, _ rules: ActivityRules) -> JSON? {
        if let posted { return filled(posted.content, version: version, timestamp: timestamp, rules) }
        guard let facts else { return ending == nil ? nil : lastState }
        return rules.content.state(facts, circumstances, version: version, timestamp: timestamp)
    }

    /// Returns a posted state with the current values of the hub's members.
    func filled(_ content: PostedState, version: Int, timestamp: Int64, _ rules: ActivityRules) -> JSON {
        content.filled(
            with: rules.content.variables(
                facts ?? ConversationFacts(), circumstances, version: version, timestamp: timestamp))
    }

    private var circumstances: ContentTemplate.Circumstances {
        ContentTemplate.Circumstances(
            activity: id, conversation: conversation, startedAt: startedAt / 1000, isConnected: !isAway)
    }

    /// Whether a sent state equals what the phone ought to show now, version and timestamp aside.
    private func isCurrent(_ sent: SentState?, _ rules: ActivityRules) -> Bool {
        guard let sent, sent.event == event else { return false }
        return state(version: sent.version, timestamp: sent.timestamp, rules)?.isEqual(to: sent.state) ?? false
    }

    private func nextTimestamp(at now: HubTime) -> Int64 {
        let seconds = now.unix / 1000
        guard let posted, let own = posted.timestamp else { return max(seconds, timestamp + 1) }
        // A posted state that the hub has since changed carries the present time.
        let isRefilled = posted.content.hasVariables && own <= timestamp
        return max(isRefilled ? seconds : own, timestamp + 1)
    }

    /// Uses up the next timestamp and version.
    private mutating func use(_ timestamp: Int64) {
        self.timestamp = timestamp
        version += 1
        if posted == nil { floor = timestamp }
    }

    // MARK: By socket

    private mutating func show(
        at now: HubTime, _ rules: ActivityRules, _ statistics: inout ActivityStatistics
    ) -> ActivityAction? {
        let again = showsAgain
        showsAgain = false
        if !again, isCurrent(shown, rules) {
            statistics.suppressed += 1
            return nil
        }
        let next = nextTimestamp(at: now)
        guard let state = state(version: version + 1, timestamp: next, rules) else { return nil }
        if !isCurrent(pushed, rules) { pushed = nil }
        use(next)
        shown = SentState(event: event, timestamp: next, version: version, state: state)
        lastState = state
        statistics.shown += 1
        return .show(
            ShownState(
                id: id, user: user, event: event, timestamp: next, version: version, state: Array(state.bytes)))
    }

    // MARK: By push

    private mutating func push(
        at now: HubTime, _ rules: ActivityRules, _ statistics: inout ActivityStatistics
    ) -> ActivityAction? {
        if !isForced, alert == nil, isCurrent(pushed, rules) {
            statistics.suppressed += 1
            return nil
        }
        let next = nextTimestamp(at: now)
        let state = state(version: version + 1, timestamp: next, rules)
        guard state != nil || ending != nil else { return nil }
        let payload: [UInt8]
        do throws(PayloadError) {
            payload = try bytes(state, next, at: now, rules)
        } catch {
            guard let state else { return nil }
            return pass(over: state, next, because: error, at: now, &statistics)
        }
        use(next)
        let push = ActivityPush(
            stamp: ActivityStamp(
                id: id, timestamp: next, version: version, state: state.map { Array($0.bytes) },
                isPosted: posted != nil,
                post: posted.flatMap { $0.content.hasVariables ? $0.content.stored : nil }),
            user: user, destination: destination, registeredAt: registeredAt, event: event, isAlerting: alert != nil,
            staleDate: staleDate(at: now, rules), payload: payload)
        inFlight = InFlight(push: push, alert: alert, wasForced: isForced)
        alert = nil
        isForced = false
        return .stamp(push)
    }

    /// Skips a state that cannot be pushed. It is not tried again before something changes; an end goes without its state.
    private mutating func pass(
        over state: JSON, _ timestamp: Int64, because error: PayloadError, at now: HubTime,
        _ statistics: inout ActivityStatistics
    ) -> ActivityAction {
        pushed = SentState(event: event, timestamp: timestamp, version: version + 1, state: state)
        statistics.unsendable += 1
        alert = nil
        isForced = false
        if ending != nil {
            (facts, posted, lastState) = (nil, nil, nil)
            mark(at: now, isUrgent: true)
        }
        return .unsendable(id: id, error)
    }

    private func staleDate(at now: HubTime, _ rules: ActivityRules) -> Int64 { now.unix / 1000 + rules.staleAfter }

    private func bytes(
        _ state: JSON?, _ timestamp: Int64, at now: HubTime, _ rules: ActivityRules
    ) throws(PayloadError) -> [UInt8] {
        let step: ActivityPayload.Step =
            switch ending {
            case nil: .update(alert: alert)
            case .byHub: .end(alert: alert, dismissal: now.unix / 1000 + rules.dismissAfter)
            case .posted(let dismissal): .end(alert: alert, dismissal: dismissal)
            }
        return try ActivityPayload(
            step, timestamp: timestamp, contentState: state, staleDate: staleDate(at: now, rules)
        ).bytes(for: destination.kind, activity: id)
    }
}
