import Wire

/// The subscribers of one channel that asked for the same row changes with the same role: one entry in the feed, and
/// one frame per change for all of them that may see it.
package final class ChangeGroup {
    package let id: ChangeGroupID
    /// The channel owns its groups and outlives them.
    unowned let channel: LocalChannel
    let subscription: ChangeSubscription
    /// All subscribers, for changes that the whole role may see.
    package var audience = Audience()
    /// The same subscribers by their claims, for changes that policies decide about.
    private(set) var principals: [Claims: ChangePrincipal] = [:]
    private(set) var state = State.registering
    /// Complaints about bindings that are not served although the group is live; already sent to the subscribers.
    private(set) var complaints: [SubscriptionComplaint] = []
    /// The loop's mark when the group became live; nil while it is not. Only since then have all changes for the group
    /// passed here.
    private(set) var liveMark: Int?
    /// Members waiting for the feed's answer, for a join or with a new token.
    var waiting = WaitingMembers()
    /// Joined members not yet told what they missed, because the group was not live.
    var outstanding = WaitingMembers()

    enum State: Equatable {
        case registering
        case live
        /// The feed cannot serve the group for now; the sentence was sent to the subscribers.
        case failed(String)
    }

    init(id: ChangeGroupID, channel: LocalChannel, subscription: ChangeSubscription) {
        self.id = id
        self.channel = channel
        self.subscription = subscription
    }

    // MARK: Subscribers

    /// Counts a subscriber in, whether its join is answered or not.
    ///
    /// - Returns: whether it is the first with these claims.
    func addSubscriber(_ claims: Claims) -> (principal: ChangePrincipal, isFirst: Bool) {
        if let principal = principals[claims] {
            principal.count += 1
            return (principal, false)
        }
        let principal = ChangePrincipal(claims: claims)
        principals[claims] = principal
        return (principal, true)
    }

    /// - Returns: whether the subscriber was the last with these claims.
    func removeSubscriber(_ principal: ChangePrincipal) -> Bool {
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

    /// The consequence of an answer from the feed.
    package enum News {
        case nothing
        /// Subscribers must be told the group's state and the complaints about it.
        case state
        /// Subscribers must be told the complaints.
        case complaints
        /// Members waiting for the answer cannot be promised anything.
        case unavailable
    }

    /// Handles the feed's word on the subscription: the first one, and every change (a table is watched, dropped,
    /// altered).
    ///
    /// - Parameter mark: how far the loop has passed on the feed's changes.
    package func receiveOutcome(_ outcome: ChangeSubscriptionOutcome, at mark: Int) -> News {
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

    /// Sends a subscriber the group's state.
    ///
    /// - Parameter cursor: where its live changes begin, for a client that asked.
    /// - Returns: whether some of the requested changes will not come. The Python client takes that for the end of the
    ///   channel, and rejoins after a while.
    func sendState(to membership: Membership, cursor: String?, _ hub: inout HubContext) -> Bool {
        switch state {
        case .registering: return false
        case .live:
            hub.sendSystemMessage(
                membership, extension: "postgres_changes", ok: true, message: "Subscribed to PostgreSQL", cursor: cursor
            )
            return sendComplaints(to: membership, &hub)
        case .failed(let message):
            hub.sendSystemMessage(membership, extension: "postgres_changes", ok: false, message: message)
            hub.reportFailure(JoinFailure(rowChanges: message), on: membership.slot)
            return true
        }
    }

    /// Sends a complaint for each binding that is not served, after the confirmation of the others. Returns as
    /// `sendState` does.
    func sendComplaints(to membership: Membership, _ hub: inout HubContext) -> Bool {
        for complaint in complaints { hub.sendComplaint(complaint, to: membership) }
        return complaints.contains(where: \.isError)
    }
}

extension HubContext {
    /// Tells a subscriber which of its changes are not served.
    mutating func sendComplaint(_ complaint: SubscriptionComplaint, to membership: Membership) {
        sendSystemMessage(membership, extension: "postgres_changes", ok: !complaint.isError, message: complaint.message)
        if complaint.isError { reportFailure(JoinFailure(rowChanges: complaint.message), on: membership.slot) }
    }
}

/// The subscribers of a group that brought the same claims: policies decide alike for all of them.
final class ChangePrincipal {
    let claims: Claims
    /// Subscribers, whether their join is answered or not.
    var count = 1
    /// Subscribers whose join is answered.
    var audience = Audience()
    /// Complaints that concern only these claims, each with its expiry in monotonic milliseconds.
    private var complaints: [(complaint: SubscriptionComplaint, until: Int64)] = []

    init(claims: Claims) {
        self.claims = claims
    }

    func recordComplaint(_ complaint: SubscriptionComplaint, until end: Int64) {
        complaints.removeAll { $0.complaint == complaint }
        complaints.append((complaint, end))
    }

    /// Returns the complaints that a subscriber with these claims must be told when it starts to hear the group.
    func complaints(at now: Int64) -> [SubscriptionComplaint] {
        if !complaints.isEmpty { complaints.removeAll { $0.until <= now } }
        return complaints.map(\.complaint)
    }
}

/// A member's subscription to row changes: its part in a group.
struct RowSubscription {
    let group: ChangeGroup
    let principal: ChangePrincipal
    /// Positions in the two audiences; nil until changes reach the member.
    var groupIndex: Int32?
    var principalIndex: Int32?
    /// The number of cursors the loop had passed on (`FeedProgress.serial`) when the member was brought up to date or
    /// last sent a change.
    var reached = 0
    /// The moment since which changes reach the member, as counted by `SessionRegistry.moment`.
    var hearsSince = Int.max
}

extension Membership {
    var group: ChangeGroup? { rows?.group }
    /// Whether the member hears the group's changes or waits for them.
    func isIn(_ group: ChangeGroup) -> Bool { !join.hasEnded && rows?.group === group }
}
