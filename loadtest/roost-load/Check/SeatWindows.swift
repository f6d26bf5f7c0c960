/// What every seat has heard: the rows of its conversation, and the broadcasts of each other member of it.
struct SeatWindows {
    private let roster: Roster
    private var occupied: [Bool]
    private var rows: ContiguousArray<SequenceWindow>
    /// For each seat one window for every place of its conversation.
    private var receipts: ContiguousArray<SequenceWindow>
    /// Where a seat's windows begin.
    private let starts: [Int]

    init(_ roster: Roster, hearsReceipts: Bool) {
        self.roster = roster
        occupied = [Bool](repeating: false, count: roster.conversations.count)
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

    func isOccupied(_ seat: Int) -> Bool { occupied[seat] }

    /// The seat of a socket in a conversation; nil if it has none.
    @inline(__always)
    func seat(of slot: Int, in conversation: Int) -> Int? {
        for seat in slot * roster.perSocket..<(slot + 1) * roster.perSocket
        where roster.conversations[seat] == conversation { return seat }
        return nil
    }

    /// From now on a seat has to hear everything.
    mutating func begin(_ seat: Int, rowsIssued: Int, _ sent: [Int]) {
        occupied[seat] = true
        rows[seat].begin(at: rowsIssued)
        for (place, speaker) in speakers(seat) { receipts[starts[seat] + place].begin(at: sent[speaker]) }
    }

    /// - Returns: what was missing between what came, and how much should have come.
    mutating func end(_ seat: Int) -> (missing: Int, expected: Int) {
        occupied[seat] = false
        var (missing, expected) = (rows[seat].missing(), rows[seat].span)
        for (place, speaker) in speakers(seat) where speaker != seat {
            missing += receipts[starts[seat] + place].missing()
            expected += receipts[starts[seat] + place].span
        }
        return (missing, expected)
    }

    mutating func takeRow(_ number: Int, _ seat: Int) -> SequenceWindow.Verdict { rows[seat].take(number) }

    mutating func takeReceipt(_ number: Int, from speaker: Int, _ seat: Int) -> SequenceWindow.Verdict {
        receipts[starts[seat] + roster.places[speaker]].take(number)
    }

    func missing(_ seat: Int, rowEnd: Int, _ sent: [Int]) -> Int {
        var missing = rows[seat].missing(before: rowEnd)
        for (place, speaker) in speakers(seat) where speaker != seat {
            missing += receipts[starts[seat] + place].missing(before: sent[speaker])
        }
        return missing
    }

    func expected(_ seat: Int, rowEnd: Int, _ sent: [Int]) -> Int {
        var expected = rows[seat].expected(before: rowEnd)
        for (place, speaker) in speakers(seat) where speaker != seat {
            expected += receipts[starts[seat] + place].expected(before: sent[speaker])
        }
        return expected
    }

    /// The seats of its conversation, by place, where their broadcasts are heard.
    private func speakers(_ seat: Int) -> EnumeratedSequence<[Int]> {
        (receipts.isEmpty ? [] : roster.members[roster.conversations[seat]]).enumerated()
    }
}
