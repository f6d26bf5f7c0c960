package import Hub

extension ActivityBook {
    /// A backend says what an activity's state is. It is passed on to the byte, and from then on the activity is the
    /// backend's: facts and standing make no states of it any more.
    ///
    /// A post's own `timestamp` becomes `aps.timestamp`, unless that has been used; without one the time of sending
    /// does. A post that is not newer than the last post, or than what the template told before the first, is stale. A
    /// post that is taken while another waits takes its place; an alert that has not rung yet rings with it.
    package mutating func post(_ post: ActivityPost, to id: String, at now: HubTime) -> PostVerdict {
        if let refusal = refusal(of: post, at: now) { return .refused(refusal) }
        let verdict = change(id) { entry, _ in entry.post(post, at: now) } ?? .unknown
        switch verdict {
        case .stale: statistics.stalePosts += 1
        case .unknown: statistics.unknownPosts += 1
        case .queued, .withheld, .refused: break
        }
        return verdict
    }

    private func refusal(of post: ActivityPost, at now: HubTime) -> String? {
        let seconds = now.unix / 1000
        if post.event == .start {
            return "An activity that is registered runs already: send event \"update\" or \"end\"."
        }
        if let timestamp = post.timestamp, timestamp < 0 || timestamp > seconds + rules.skew {
            return "timestamp \(timestamp) is not a time until now: send seconds since 1970, or leave it out."
        }
        let step: ActivityPayload.Step =
            post.event == .end
            ? .end(alert: post.alert, dismissal: post.dismissal ?? seconds) : .update(alert: post.alert)
        let payload = ActivityPayload(
            step, timestamp: seconds, contentState: post.contentState, staleDate: seconds + rules.staleAfter)
        do throws(PayloadError) {
            _ = try payload.bytes()
            return nil
        } catch {
            return error.description
        }
    }
}
