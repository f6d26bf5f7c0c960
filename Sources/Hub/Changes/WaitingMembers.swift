/// Members of a group that wait for something, in the order in which they came.
///
/// Who leaves stays in the list, and is passed over, until half of it has left: leaving costs the same however many wait, and
/// the list never holds twice as many as wait.
struct WaitingMembers {
    private var members: [Membership] = []
    private var left = 0

    /// As many as the list takes room for.
    var count: Int { members.count }

    mutating func add(_ membership: Membership) { members.append(membership) }

    /// A member that may be among them left the group.
    mutating func isLeft(by membership: Membership, of group: ChangeGroup) {
        guard !members.isEmpty else { return }
        left += 1
        guard left * 2 > members.count else { return }
        members.removeAll { $0 === membership || !$0.isIn(group) }
        left = 0
    }

    /// Those who wait still.
    func members(of group: ChangeGroup) -> [Membership] { members.filter { $0.isIn(group) } }

    /// All of them, who wait no more; those who left are among them.
    mutating func take() -> [Membership] {
        defer { self = WaitingMembers() }
        return members
    }
}
