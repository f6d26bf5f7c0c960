import Hub
import Wire

/// What became of a push.
extension ActivityEntry {
    /// Its timestamp is written down. Nil where it is not to be sent any more, because the app has come back.
    mutating func stamped(_ timestamp: Int64, at now: HubTime) -> StampRequest? {
        guard var flight = waiting(timestamp) else { return nil }
        guard isAway, !isOver else {
            self.flight = nil
            // Whoever is in the window may not come back in it.
            if standing != .live { alert = alert ?? flight.alert }
            return nil
        }
        flight.isSending = true
        // The token may have changed meanwhile.
        flight.request.destination = destination
        self.flight = flight
        lastPushAt = now.monotonic
        if let state = flight.request.state { lastState = JSON(trusted: state[...]) }
        return flight.request
    }

    /// Its timestamp could not be written down.
    mutating func unstamped(_ timestamp: Int64, at now: HubTime, _ rules: ActivityRules) {
        guard let flight = waiting(timestamp) else { return }
        // It was never used, unless something was shown since.
        if version == flight.request.version { version -= 1 }
        again(flight, forced: flight.wasForced, at: now, rules)
    }

    /// Another hub has written down a newer one.
    mutating func refused(_ timestamp: Int64, current: ActivityRegistration, at now: HubTime, _ rules: ActivityRules) {
        guard let flight = waiting(timestamp) else { return }
        adopt(current, at: now)
        destination = current.destination
        again(flight, forced: false, at: now, rules)
    }

    mutating func sent(_ timestamp: Int64, _ outcome: ActivityOutcome, at now: HubTime, _ rules: ActivityRules) {
        guard let flight, flight.isSending, flight.request.timestamp == timestamp else { return }
        let request = flight.request
        guard request.destination == destination else {
            // What the old token has is of no interest.
            again(flight, forced: true, at: now, rules)
            retryAt = nil
            attempts = 0
            return
        }
        switch outcome {
        case .delivered, .failed(retryLater: false):
            // What was refused for good counts as told, so that it is not sent again before something changes.
            self.flight = nil
            retryAt = nil
            attempts = 0
            arrived(Told(request))
            if request.event == .end { overSince = now.monotonic }
        case .gone:
            self.flight = nil
            overSince = now.monotonic
        case .unanswered, .failed(retryLater: true):
            pushed = nil
            again(flight, forced: false, at: now, rules)
        }
    }

    private func waiting(_ timestamp: Int64) -> Flight? {
        guard let flight, !flight.isSending, flight.request.timestamp == timestamp else { return nil }
        return flight
    }

    /// The latest state takes its place, a while later; and it rings if this one was to ring.
    private mutating func again(_ flight: Flight, forced: Bool, at now: HubTime, _ rules: ActivityRules) {
        self.flight = nil
        guard standing != .live else { return }
        alert = alert ?? flight.alert
        guard isAway else { return }
        isForced = isForced || forced
        attempts += 1
        retryAt = now.monotonic + rules.retryDelay(attempt: attempts)
        mark(at: now, isUrgent: true)
    }
}

extension ActivityEntry.Told {
    /// Nil for an end without a state.
    fileprivate init?(_ request: StampRequest) {
        guard let state = request.state else { return nil }
        self.init(
            event: request.event, timestamp: request.timestamp, version: request.version,
            state: JSON(trusted: state[...]))
    }
}
