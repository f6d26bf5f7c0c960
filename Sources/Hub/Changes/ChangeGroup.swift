import Wire

/// The subscribers of one channel who asked for the same row changes with the same role: one entry in the feed, one frame
/// per change for all of them who may see it.
package final class ChangeGroup {
    package let id: ChangeGroupID
    /// The channel owns its groups, and goes last.
    unowned let channel: LocalChannel
    let subscription: ChangeSubscription
    /// Everybody, for changes that the whole role may see.
    package var audience = Audience()
    /// The same subscribers by who they are, for changes that policies decide about.
    private(set) var principals: [Claims: ChangePrincipal] = [:]
    private(set) var state = State.registering
    /// About bindings that are not served although the group is live; they were sent to the subscribers.
    private(set) var complaints: [SubscriptionComplaint] = []
    /// The loop's mark when it became live; nil while it is not. What concerns it came by here only since then.
    private(set) var liveMark: Int?
    /// Who waits for the feed's answer, to its join or with a new token.
    var waiting = WaitingMembers()
    /// Who is joined and was not told yet what it missed: the group was not live.
    var outstanding = WaitingMembers()

    enum State: Equatable {
        case registering
        case live
        /// The feed cannot serve it for now; the sentence was sent to the subscribers.
        case failed(String)
    }

    init(id: ChangeGroupID, channel: LocalChannel, subscription: ChangeSubscription) {
        self.id = id
        self.channel = channel
        self.subscription = subscription
    }

    // MARK: Subscribers

    /// Counts a subscriber in, waiting or not.
    ///
    /// - Returns: whether it is the first with these claims.
    func enter(_ claims: Claims) -> (principal: ChangePrincipal, isFirst: Bool) {
        if let principal = principals[claims] {
            principal.count += 1
            return (principal, false)
        }
        let principal = ChangePrincipal(claims: claims)
        principals[claims] = principal
        return (principal, true)
    }

    /// - Returns: whether it was the last with these claims.
    func exit(_ principal: ChangePrincipal) -> Bool {
        principal.count -= 1
        guard principal.count == 0 else { return false }
        principals[principal.claims] = nil
        return true
    }

    func audience(of change: ChangeDelivery) -> Audience {
        switch change.recipients {
        case .everybody: audience
        case .bearers(let claims): audience(of: claims)
        }
    }

    func audience(of claims: [Claims]) -> Audience {
        Audience(joining: claims.compactMap { principals[$0]?.audience })
    }

    // MARK: The feed's answer

    /// What follows from an answer of the feed.
    package enum News {
        case nothing
        /// Those who hear the group's changes are told its state, and of what is not served of it.
        case state
        /// They are told what is not served of it.
        case complaints
        /// Those who wait for the answer cannot be promised anything.
        case unavailable
    }

    /// The feed's word on the subscription: at first, and whenever it changes (a table is watched, dropped, altered).
    ///
    /// - Parameter mark: up to where the loop passed on the feed's changes.
    package func take(_ outcome: ChangeSubscriptionOutcome, at mark: Int) -> News {
        let (before, known) = (state, complaints)
        switch outcome {
        case .live: becomeLive([], at: mark)
        case .partly(let complaints): becomeLive(complaints, at: mark)
        case .failed(let message):
            state = .failed(message)
            complaints = []
            liveMark = nil
        case .unavailable: return before == .registering ? .unavailable : .nothing
        }
        if before != state || !known.isEmpty && complaints.isEmpty { return .state }
        return known == complaints ? .nothing : .complaints
    }

    private func becomeLive(_ complaints: [SubscriptionComplaint], at mark: Int) {
        if state != .live { liveMark = mark }
        state = .live
        self.complaints = complaints
    }

    /// Tells a subscriber the group's state.
    ///
    /// - Parameter cursor: where its changes begin to come live, for a client that asked.
    /// - Returns: whether changes that it asked for do not come. The Python client takes that for the end of the channel,
    ///   and joins again some time.
    func sendState(to membership: Membership, cursor: String?, _ hub: inout HubContext) -> Bool {
        switch state {
        case .registering: return false
        case .live:
            hub.system(
                membership, extension: "postgres_changes", ok: true, message: "Subscribed to PostgreSQL", cursor: cursor
            )
            return sendComplaints(to: membership, &hub)
        case .failed(let message):
            hub.system(membership, extension: "postgres_changes", ok: false, message: message)
            hub.report(JoinFailure(rowChanges: message), on: membership.slot)
            return true
        }
    }

    /// Says which of the bindings are not served, behind the word that the others are. Returns as `sendState` does.
    func sendComplaints(to membership: Membership, _ hub: inout HubContext) -> Bool {
        for complaint in complaints { hub.tell(complaint, to: membership) }
        return complaints.contains(where: \.isError)
    }
}

extension HubContext {
    /// Tells a subscriber what it is not served.
    mutating func tell(_ complaint: SubscriptionComplaint, to membership: Membership) {
        system(membership, extension: "postgres_changes", ok: !complaint.isError, message: complaint.message)
        if complaint.isError { report(JoinFailure(rowChanges: complaint.message), on: membership.slot) }
    }
}

/// The subscribers of a group who brought the same claims: policies decide alike for all of them.
final class ChangePrincipal {
    let claims: Claims
    /// Those whose join is answered, and those who wait for it.
    var count = 1
    /// Those whose join is answered.
    var audience = Audience()
    /// What they alone are not served of the group, each with when that is over, in monotonic milliseconds.
    private var complaints: [(complaint: SubscriptionComplaint, until: Int64)] = []

    init(claims: Claims) {
        self.claims = claims
    }

    func isTold(_ complaint: SubscriptionComplaint, until end: Int64) {
        complaints.removeAll { $0.complaint == complaint }
        complaints.append((complaint, end))
    }

    /// What whoever of them begins to hear the group is to be told.
    func complaints(at now: Int64) -> [SubscriptionComplaint] {
        if !complaints.isEmpty { complaints.removeAll { $0.until <= now } }
        return complaints.map(\.complaint)
    }
}

/// A member's subscription to row changes: its part in a group.
struct RowSubscription {
    let group: ChangeGroup
    let principal: ChangePrincipal
    /// Its positions in their audiences; nil until changes reach it.
    var groupIndex: Int32?
    var principalIndex: Int32?
    /// How many cursors the loop had passed on (`FeedProgress.serial`) when the member was brought to the present, or was last sent
    /// a change.
    var reached = 0
    /// Since when changes reach it, as `SessionRegistry.moment` counts.
    var hearsSince = Int.max
}

extension Membership {
    var group: ChangeGroup? { rows?.group }
    /// Whether it hears the group's changes, or waits for them.
    func isIn(_ group: ChangeGroup) -> Bool { !join.hasEnded && rows?.group === group }
}
