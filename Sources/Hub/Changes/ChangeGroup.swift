/// The subscribers of one channel who asked for the same row changes with the same role: one entry in the feed, one frame
/// per change for all of them who may see it.
final class ChangeGroup {
    let id: ChangeGroupID
    /// The channel owns its groups, and goes last.
    unowned let channel: Channel
    let subscription: ChangeSubscription
    /// Everybody, for changes that the whole role may see.
    var audience = Audience()
    /// The same subscribers by who they are, for changes that policies decide about.
    private(set) var principals: [Claims: ChangePrincipal] = [:]
    var state = State.registering
    /// About bindings that are not served although the group is live; they were sent to the subscribers.
    var complaints: [SubscriptionComplaint] = []
    /// The loop's mark when it became live; nil while it is not. What concerns it came by here only since then.
    var liveMark: Int?
    /// Who waits for the feed's answer before their join is answered.
    var waiting: [Membership] = []
    /// Who is joined and was not told yet what it missed: the group was not live.
    var outstanding: [Membership] = []

    enum State: Equatable {
        case registering
        case live
        /// The feed cannot serve it for now; the sentence was sent to the subscribers.
        case failed(String)
    }

    init(id: ChangeGroupID, channel: Channel, subscription: ChangeSubscription) {
        self.id = id
        self.channel = channel
        self.subscription = subscription
    }

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
}

/// The subscribers of a group who brought the same claims: policies decide alike for all of them.
final class ChangePrincipal {
    let claims: Claims
    /// Those whose join is answered, and those who wait for it.
    var count = 1
    /// Those whose join is answered.
    var audience = Audience()

    init(claims: Claims) {
        self.claims = claims
    }
}

/// Where a member is, or was, among those who subscribe to the same row changes.
struct ChangePlace {
    let group: ChangeGroup
    let principal: ChangePrincipal
    /// Nil until the join is answered.
    let groupSeat: Int32?
    let principalSeat: Int32?
}

extension Membership {
    /// Nil where it asked for no row changes.
    var place: ChangePlace? {
        guard let group, let principal else { return nil }
        return ChangePlace(group: group, principal: principal, groupSeat: groupSeat, principalSeat: principalSeat)
    }
}
