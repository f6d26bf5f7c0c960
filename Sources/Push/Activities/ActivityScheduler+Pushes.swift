package import Hub
package import Wire

/// The answers to the pushes that `advance` asked for. The timestamp names the push that is meant; an answer to one
/// that is not in flight does nothing.
extension ActivityScheduler {
    /// The stamp of a push is written down.
    ///
    /// - Returns: what is to be sent; nil where nothing is to be sent after all, because the app has come back in the
    ///   meantime or the activity is gone.
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

    /// The stamp of a push could not be written down, such as because the database is away: the latest state is tried
    /// again.
    @discardableResult
    package mutating func unstamped(_ id: Name, timestamp: Int64, at now: HubTime) -> Bool {
        change(id) { [rules] entry, _ in entry.unstamped(timestamp, at: now, rules) } != nil
    }

    /// Another hub has written down a newer stamp: `current` is what it wrote. What this hub knows is sent after it, if
    /// it is something else.
    @discardableResult
    package mutating func refused(
        _ id: Name, timestamp: Int64, current: ActivityRegistration, at now: HubTime
    ) -> Bool {
        change(id) { [rules] entry, _ in entry.refused(timestamp, current: current, at: now, rules) } != nil
    }

    /// Takes note of what became of a push that `stamped` returned. An end that was delivered, and a token that is
    /// gone, take the activity out of the scheduler, and the next `advance` says `ended`.
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
    /// A backend says what an activity's state is. It is passed on to the byte, but for the members that it leaves to the
    /// hub. From then on the activity is the backend's: facts and status change those members and nothing else.
    ///
    /// A post's own `timestamp` becomes `aps.timestamp`, unless that has been used; without one the time of sending
    /// does. A post that is not newer than the last post, or than what the template made before the first, is stale. A
    /// post that is taken while another waits takes its place, and an alert that has not gone out yet goes with it.
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

    /// Why a post cannot be sent, in one sentence; nil where it can be.
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
