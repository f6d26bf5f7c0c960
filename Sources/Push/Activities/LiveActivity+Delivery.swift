import Hub
import Wire

/// The answers to a push: whether its stamp is stored, and its outcome. Each names the push by its timestamp, and does nothing if that
/// push is not the one in flight.
extension LiveActivity {
    /// Notes that the stamp is stored.
    ///
    /// - Returns: the push to send; nil if nothing is to be sent any more, because the app has come back.
    mutating func stamped(_ timestamp: Int64, at now: HubTime) -> ActivityPush? {
        guard var inFlight = waiting(timestamp) else { return nil }
        guard isAway, !isOver else {
            self.inFlight = nil
            // An app in its grace window may still not come back: the alert is kept for that.
            if status != .live { alert = alert ?? inFlight.alert }
            return nil
        }
        inFlight.isSending = true
        // The token may have changed in the meantime.
        inFlight.push.destination = destination
        inFlight.push.registeredAt = registeredAt
        self.inFlight = inFlight
        lastPushAt = now.monotonic
        if let state = inFlight.push.stamp.state { lastState = JSON(trusted: state[...]) }
        return inFlight.push
    }

    /// Notes that the stamp could not be stored, for example because the database is away.
    mutating func unstamped(_ timestamp: Int64, at now: HubTime, _ rules: ActivityRules) {
        guard let inFlight = waiting(timestamp) else { return }
        // The version was never used, unless something was shown since.
        if version == inFlight.push.stamp.version { version -= 1 }
        again(inFlight, forced: inFlight.wasForced, at: now, rules)
    }

    /// Notes that another hub has stored a newer stamp, `current`.
    mutating func refused(_ timestamp: Int64, current: ActivityRegistration, at now: HubTime, _ rules: ActivityRules) {
        guard let inFlight = waiting(timestamp) else { return }
        adopt(current, at: now)
        destination = current.destination
        registeredAt = current.registeredAt
        again(inFlight, forced: false, at: now, rules)
    }

    /// Notes the outcome of the push.
    mutating func sent(_ timestamp: Int64, _ outcome: ActivityPush.Outcome, at now: HubTime, _ rules: ActivityRules) {
        guard let inFlight, inFlight.isSending, inFlight.push.timestamp == timestamp else { return }
        let push = inFlight.push
        guard push.destination == destination else {
            // The token has changed since: the old one's state is of no interest.
            again(inFlight, forced: true, at: now, rules)
            retryAt = nil
            attempts = 0
            return
        }
        switch outcome {
        case .delivered, .failed(retryLater: false):
            // A push refused for good counts as sent, so that it is not sent again before something changes.
            self.inFlight = nil
            retryAt = nil
            attempts = 0
            arrived(SentState(push))
            if push.event == .end { overSince = now.monotonic }
        case .gone(let since) where PushToken.isGone(since: since, registeredAt: registeredAt):
            self.inFlight = nil
            overSince = now.monotonic
        case .unanswered, .failed(retryLater: true), .gone:
            pushed = nil
            again(inFlight, forced: false, at: now, rules)
        }
    }

    /// Returns the push in flight if it has this timestamp and waits for its stamp.
    private func waiting(_ timestamp: Int64) -> InFlight? {
        guard let inFlight, !inFlight.isSending, inFlight.push.timestamp == timestamp else { return nil }
        return inFlight
    }

    /// Ends a failed push: after a delay the latest state takes its place, with the alert that this one carried.
    private mutating func again(_ inFlight: InFlight, forced: Bool, at now: HubTime, _ rules: ActivityRules) {
        self.inFlight = nil
        guard status != .live else { return }
        alert = alert ?? inFlight.alert
        guard isAway else { return }
        isForced = isForced || forced
        attempts += 1
        retryAt = now.monotonic + rules.retryDelay(attempt: attempts)
        mark(at: now, isUrgent: true)
    }
}

extension LiveActivity.SentState {
    /// Nil for an end without a known state.
    fileprivate init?(_ push: ActivityPush) {
        guard let state = push.stamp.state else { return nil }
        self.init(
            event: push.event, timestamp: push.timestamp, version: push.stamp.version,
            state: JSON(trusted: state[...]))
    }
}
