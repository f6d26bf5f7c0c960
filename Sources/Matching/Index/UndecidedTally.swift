/// Counts what Postgres has to decide, to find whose filters end where it is too much.
package struct UndecidedTally {
    private struct Share {
        var questions = 0
        var bindings: Set<Int> = []
    }

    /// By the group's number.
    private var shares: [Int: Share] = [:]
    private var questions = 0

    package init() {}

    /// What is bound again in a moment is no subscriber's fault, and does not count.
    package mutating func count(_ matches: Matches) {
        var group: Int?
        var share = Share()
        for candidate in matches.undecided where candidate.isLasting {
            if candidate.group != group {
                if let group { shares[group] = share }
                share = shares[candidate.group] ?? Share()
                group = candidate.group
            }
            share.questions += 1
            share.bindings.insert(candidate.id)
            questions += 1
        }
        if let group { shares[group] = share }
    }

    /// Which bindings have to end so that no more than `most` questions are left: all of the group that asks most for each of
    /// its members, then of the next; among equals the newest, which has the highest number.
    package func excess(over most: Int, members: (Int) -> Int) -> [Int: Set<Int>] {
        guard questions > most else { return [:] }
        let order = shares.map { (weight: Double($1.questions) / Double(max(1, members($0))), group: $0) }.sorted(by: >)
        var left = questions
        var excess: [Int: Set<Int>] = [:]
        for (_, group) in order where left > most {
            guard let share = shares[group] else { continue }
            excess[group] = share.bindings
            left -= share.questions
        }
        return excess
    }
}
