package import Hub
package import Wire

/// The answers to the pushes that `advance` asked for. The timestamp identifies the push; an answer to one that is not in flight does
/// nothing.
extension ActivityScheduler {
    /// Notes that the stamp of a push is stored.
    ///
    /// - Returns: the push to send; nil if nothing is to be sent after all, because the app has come back in the meantime or the
    ///   activity is gone.
    package mutating func stamped(_ id: Name, timestamp: Int64, at now: HubTime) -> ActivityPush? {
        let push = change(id) { (entry, statistics) -> ActivityPush? in
            let wasWaiting = entry.inFlight?.isSending == false
            let push = entry.stamped(timestamp, at: now)
            if push != nil {
                statistics.pushed += 1
            } else if wasWaiting, entry.inFlight == nil {
                statistics.withdrawn += 1
            }
            return push
        }
        return push ?? nil
    }

    /// Notes that the stamp of a push could not be stored, for example because the database is away: the latest state is tried again.
    @discardableResult
    package mutating func unstamped(_ id: Name, timestamp: Int64, at now: HubTime) -> Bool {
        change(id) { [rules] entry, _ in entry.unstamped(timestamp, at: now, rules) } != nil
    }

    /// Notes that another hub has stored a newer stamp, `current`. This hub's state is sent after it if the two differ.
    @discardableResult
    package mutating func refused(
        _ id: Name, timestamp: Int64, current: ActivityRegistration, at now: HubTime
    ) -> Bool {
        change(id) { [rules] entry, _ in entry.refused(timestamp, current: current, at: now, rules) } != nil
    }

    /// Notes the outcome of a push that `stamped` returned. A delivered end, or a token that is gone, takes the activity out of the
    /// scheduler, and the next `advance` reports `ended`.
    @discardableResult
    package mutating func sent(_ id: Name, timestamp: Int64, _ outcome: ActivityPush.Outcome, at now: HubTime) -> Bool {
        change(id) { [rules] (entry, statistics) -> Void in
            if outcome == .unanswered { statistics.unanswered += 1 }
            entry.sent(timestamp, outcome, at: now, rules)
        } != nil
    }
}

/// The states that backends post.
extension ActivityScheduler {
    /// Takes a backend's state for an activity. The state is passed on to the byte, except for the members left to the hub. The
    /// activity then belongs to the backend: facts and status change those members and nothing else.
    ///
    /// A post's own `timestamp` becomes `aps.timestamp`, unless that has been used; a post without one gets the time of sending. A post
    /// that is not newer than the last post, or than what the template made before the first, is stale. A post that is accepted while
    /// another waits replaces it, and an alert that has not gone out yet goes with the new one.
    package mutating func post(_ post: ActivityPost, to id: Name, at now: HubTime) -> PostVerdict {
        if let refusal = refusal(of: post, to: id, at: now) { return .refused(refusal) }
        let verdict = change(id) { entry, _ in entry.post(post, at: now) } ?? .unknown
        switch verdict {
        case .stale: statistics.stalePosts += 1
        case .unknown: statistics.unknownPosts += 1
        case .queued, .withheld, .refused: break
        }
        return verdict
    }

    /// The reason why a post cannot be sent, in one sentence; nil if it can be.
    private func refusal(of post: ActivityPost, to id: Name, at now: HubTime) -> String? {
        let seconds = now.unix / 1000
        if post.event == .start {
            return "An activity that is registered is already running: send event \"update\" or \"end\"."
        }
        if let timestamp = post.timestamp, timestamp < 0 || timestamp > seconds + rules.skew {
            return "timestamp \(timestamp) is not a time until now: send seconds since 1970, or leave it out."
        }
        let step: ActivityPayload.Step =
            post.event == .end
            ? .end(alert: post.alert, dismissal: post.dismissal ?? seconds) : .update(alert: post.alert)
        let payload = ActivityPayload(
            step, timestamp: seconds, contentState: filled(post.content, for: id, at: now),
            staleDate: seconds + rules.staleAfter)
        do throws(PayloadError) {
            _ = try payload.bytes(for: destination(of: id)?.kind ?? .apns, activity: id)
            return nil
        } catch {
            return error.description
        }
    }
}
