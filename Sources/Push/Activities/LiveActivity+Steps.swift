import Hub
import Wire

/// What an activity does when its time has come.
extension ActivityEntry {
    /// When that is, in monotonic milliseconds.
    func due(_ rules: ActivityRules) -> Int64 {
        if let overSince { return overSince }
        let end = ending == nil ? endsAt : forgetAt
        return wakeDue(rules).map { min($0, end) } ?? end
    }

    private func wakeDue(_ rules: ActivityRules) -> Int64? {
        guard let wake else { return nil }
        let due = wake.due(rules)
        guard isAway else { return due }
        guard flight == nil else { return nil }
        let isPatient = alert == nil && ending == nil
        let spaced = isPatient ? lastPushAt.map { $0 + rules.quiet } : nil
        return max(due, retryAt ?? due, spaced ?? due)
    }

    mutating func step(
        at now: HubTime, _ rules: ActivityRules, _ statistics: inout ActivityStatistics
    ) -> ActivityAction? {
        if isOver || now.monotonic >= forgetAt {
            overSince = overSince ?? now.monotonic
            return .ended(id: id)
        }
        if now.monotonic >= endsAt { end(.byHub, at: now) }
        guard let due = wakeDue(rules), now.monotonic >= due else { return nil }
        wake = nil
        return isAway ? push(at: now, rules, &statistics) : show(at: now, rules, &statistics)
    }

    private var event: ActivityEvent { ending == nil ? .update : .end }

    /// What the phone ought to show. Nil where that is not known.
    private func state(version: Int, timestamp: Int64, _ rules: ActivityRules) -> JSON? {
        if let posted { return posted.state }
        guard let facts else { return ending == nil ? nil : lastState }
        let circumstances = ContentTemplate.Circumstances(
            activity: id, conversation: conversation, startedAt: startedAt / 1000, isConnected: !isAway)
        return rules.content.state(facts, circumstances, version: version, timestamp: timestamp)
    }

    /// Whether that is what the phone ought to show, version and time of the telling aside.
    private func isRight(_ told: Told?, _ rules: ActivityRules) -> Bool {
        guard let told, told.event == event else { return false }
        return state(version: told.version, timestamp: told.timestamp, rules)?.isEqual(to: told.state) ?? false
    }

    private func nextTimestamp(at now: HubTime) -> Int64 {
        max(posted?.timestamp ?? now.unix / 1000, timestamp + 1)
    }

    /// Takes the next timestamp and version into use.
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
        if !again, isRight(shown, rules) {
            statistics.suppressed += 1
            return nil
        }
        let next = nextTimestamp(at: now)
        guard let state = state(version: version + 1, timestamp: next, rules) else { return nil }
        if !isRight(pushed, rules) { pushed = nil }
        use(next)
        shown = Told(event: event, timestamp: next, version: version, state: state)
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
        if !isForced, alert == nil, isRight(pushed, rules) {
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
        let request = StampRequest(
            id: id, user: user, destination: destination, event: event, timestamp: next, version: version,
            state: state.map { Array($0.bytes) }, isPosted: posted != nil, isAlerting: alert != nil,
            staleDate: staleDate(at: now, rules), payload: payload)
        flight = Flight(request: request, alert: alert, wasForced: isForced)
        alert = nil
        isForced = false
        return .stamp(request)
    }

    /// What is too large is not tried again before something changes; an end goes without its state.
    private mutating func pass(
        over state: JSON, _ timestamp: Int64, because error: PayloadError, at now: HubTime,
        _ statistics: inout ActivityStatistics
    ) -> ActivityAction {
        pushed = Told(event: event, timestamp: timestamp, version: version + 1, state: state)
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
        ).bytes()
    }
}
