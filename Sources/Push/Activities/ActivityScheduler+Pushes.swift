package import Hub

/// The answers to what `advance` asked for. The timestamp tells which push is meant: an answer to one that is not on
/// its way does nothing.
extension ActivityBook {
    /// The timestamp is written down. Returns what is to be sent; nil where it is not to be sent after all, because the
    /// app has come back in the meantime or the activity is gone.
    package mutating func stamped(_ id: String, timestamp: Int64, at now: HubTime) -> StampRequest? {
        let request = change(id) { (entry, statistics) -> StampRequest? in
            let wasWaiting = entry.flight?.isSending == false
            let request = entry.stamped(timestamp, at: now)
            if request != nil {
                statistics.pushed += 1
            } else if wasWaiting, entry.flight == nil {
                statistics.withdrawn += 1
            }
            return request
        }
        return request ?? nil
    }

    /// The timestamp could not be written down, such as because the database is away: the latest state is tried again.
    @discardableResult
    package mutating func unstamped(_ id: String, timestamp: Int64, at now: HubTime) -> Bool {
        change(id) { [rules] entry, _ in entry.unstamped(timestamp, at: now, rules) } != nil
    }

    /// Another hub has written down a newer timestamp: `current` is what it wrote. What this hub knows is told after
    /// it, if it is something else.
    @discardableResult
    package mutating func refused(
        _ id: String, timestamp: Int64, current: ActivityRegistration, at now: HubTime
    ) -> Bool {
        change(id) { [rules] entry, _ in entry.refused(timestamp, current: current, at: now, rules) } != nil
    }

    /// What became of a push that `stamped` returned. An end that was delivered, and a token that is gone, take the
    /// activity out of the book, and the next `advance` says `ended`.
    @discardableResult
    package mutating func sent(_ id: String, timestamp: Int64, _ outcome: ActivityOutcome, at now: HubTime) -> Bool {
        change(id) { [rules] (entry, statistics) -> Void in
            if outcome == .unanswered { statistics.unanswered += 1 }
            entry.sent(timestamp, outcome, at: now, rules)
        } != nil
    }
}
