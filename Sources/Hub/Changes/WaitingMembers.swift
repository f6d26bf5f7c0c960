/// Members of a group that are waiting for something, in order of arrival.
///
/// A member that leaves stays in the list and is skipped until half of the list has left: the cost of leaving does not
/// grow with the number of waiting members, and the list is never more than twice as long as needed.
struct WaitingMembers {
    private var members: [Membership] = []
    private var left = 0

    /// The length of the list, including members that have left.
    var count: Int { members.count }

    mutating func addMember(_ membership: Membership) { members.append(membership) }

    /// Handles the leave of a group's member that may be in the list.
    mutating func countLeft(by membership: Membership, of group: ChangeGroup) {
        guard !members.isEmpty else { return }
        left += 1
        guard left * 2 > members.count else { return }
        members.removeAll { $0 === membership || !$0.isIn(group) }
        left = 0
    }

    /// Returns the members that are still waiting.
    func members(of group: ChangeGroup) -> [Membership] { members.filter { $0.isIn(group) } }

    /// Removes and returns all members, including those that have left.
    mutating func takeAll() -> [Membership] {
        defer { self = WaitingMembers() }
        return members
    }
}
