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
