/// What was received by every membership, which is one socket's part in one conversation (see `Roster`): the rows of the
/// conversation, and the read receipts of each other member.
struct MembershipWindows {
    private let roster: Roster
    private var active: [Bool]
    private var rows: ContiguousArray<SequenceWindow>
    /// For each membership one window for every member of its conversation, in the order of `Roster.places`.
    private var receipts: ContiguousArray<SequenceWindow>
    /// Where a membership's windows begin.
    private let starts: [Int]

    init(_ roster: Roster, hearsReceipts: Bool) {
        self.roster = roster
        active = [Bool](repeating: false, count: roster.conversations.count)
        rows = ContiguousArray(repeating: SequenceWindow(), count: roster.conversations.count)
        var starts: [Int] = []
        var total = 0
        for conversation in roster.conversations {
            starts.append(total)
            if hearsReceipts, conversation >= 0 { total += roster.members[conversation].count }
        }
        self.starts = starts
        receipts = ContiguousArray(repeating: SequenceWindow(), count: total)
    }

    func isActive(_ membership: Int) -> Bool { active[membership] }

    /// The membership of a socket in a conversation; nil if it has none.
    @inline(__always)
    func membership(of slot: Int, in conversation: Int) -> Int? {
        for membership in slot * roster.perSocket..<(slot + 1) * roster.perSocket
        where roster.conversations[membership] == conversation { return membership }
        return nil
    }

    /// From now on a membership has to receive everything.
    mutating func begin(_ membership: Int, rowsIssued: Int, _ sent: [Int]) {
        active[membership] = true
        rows[membership].begin(at: rowsIssued)
        for (place, sender) in senders(membership) { receipts[starts[membership] + place].begin(at: sent[sender]) }
    }

    /// - Returns: what was missing between what came, and how much should have come.
    mutating func end(_ membership: Int) -> (missing: Int, expected: Int) {
        active[membership] = false
        var (missing, expected) = (rows[membership].missing(), rows[membership].span)
        for (place, sender) in senders(membership) where sender != membership {
            missing += receipts[starts[membership] + place].missing()
            expected += receipts[starts[membership] + place].span
        }
        return (missing, expected)
    }

    mutating func takeRow(_ number: Int, _ membership: Int) -> SequenceWindow.Verdict { rows[membership].take(number) }

    mutating func takeReceipt(_ number: Int, from sender: Int, _ membership: Int) -> SequenceWindow.Verdict {
        receipts[starts[membership] + roster.places[sender]].take(number)
    }

    func missing(_ membership: Int, rowEnd: Int, _ sent: [Int]) -> Int {
        var missing = rows[membership].missing(before: rowEnd)
        for (place, sender) in senders(membership) where sender != membership {
            missing += receipts[starts[membership] + place].missing(before: sent[sender])
        }
        return missing
    }

    func expected(_ membership: Int, rowEnd: Int, _ sent: [Int]) -> Int {
        var expected = rows[membership].expected(before: rowEnd)
        for (place, sender) in senders(membership) where sender != membership {
            expected += receipts[starts[membership] + place].expected(before: sent[sender])
        }
        return expected
    }

    /// All memberships of the same conversation, by place; none where read receipts are not counted.
    private func senders(_ membership: Int) -> EnumeratedSequence<[Int]> {
        (receipts.isEmpty ? [] : roster.members[roster.conversations[membership]]).enumerated()
    }
}
