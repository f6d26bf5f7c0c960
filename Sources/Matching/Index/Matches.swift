/// The recipients of a change.
package struct Matches: Sendable {
    /// One frame: a group, the columns that it selected, and the bindings that match.
    package struct Delivery: Sendable, Equatable {
        package let group: Int
        package let selection: Selection?
        /// The ids of the matching bindings, without duplicates, in ascending order.
        package internal(set) var ids: [Int]

        package init(group: Int, selection: Selection?, ids: [Int]) {
            self.group = group
            self.selection = selection
            self.ids = ids
        }
    }

    /// A binding that gets the change if Postgres says so. A single reference, because a row may have a thousand.
    package struct Undecided: Sendable {
        let entry: EntryTable.Entry
        /// True if the index has already decided its part of the filter.
        let isFoundByValue: Bool
        /// True if its filter was bound to the current table, so Postgres has to decide the next row too. Other filters are
        /// about to be bound again.
        package let isLasting: Bool

        package var group: Int { entry.group }
        package var selection: Selection? { entry.selection }
        package var id: Int { entry.ids[0] }
        fileprivate var filter: BoundFilter { isFoundByValue ? entry.residual : entry.filter }
    }

    /// The certain recipients: at most one delivery for each group and selection, in no particular order.
    package internal(set) var deliveries: [Delivery] = []
    package internal(set) var undecided: [Undecided] = []
    /// The record that `undecided` depends on; nil if nothing is undecided.
    var record: RowRecord?

    package init() {}

    package var isEmpty: Bool { deliveries.isEmpty && undecided.isEmpty }

    /// The questions for Postgres, in the order of `undecided`. Computed on demand, because each takes microseconds. Equal
    /// cells are shared: a row may be large, and thousands of questions may be about it.
    package var conditions: [PostgresCondition] {
        guard var record else { return [] }
        var cells: [UInt8] = []
        return undecided.map { undecided in
            let condition = undecided.filter.question(about: &record)
            guard condition.cells == cells else {
                cells = condition.cells
                return condition
            }
            return PostgresCondition(
                table: condition.table, expression: condition.expression, sources: condition.sources, cells: cells)
        }
    }

    /// Splits the matches into deliveries that some groups get now, and those that the others get later.
    ///
    /// - Parameter waits: true if a group has to wait; a group with an undecided condition always waits.
    package func split(where waits: (Int) -> Bool) -> (now: [Delivery], later: Matches) {
        let unsure = Set(groupsOfUndecided)
        var later = Matches()
        var now: [Delivery] = []
        for delivery in deliveries {
            if unsure.contains(delivery.group) || waits(delivery.group) {
                later.deliveries.append(delivery)
            } else {
                now.append(delivery)
            }
        }
        later.undecided = undecided
        later.record = record
        return (now, later)
    }

    /// The groups with something undecided. A group may occur more than once, but not for each of its bindings if these are
    /// adjacent, as they mostly are.
    package var groupsOfUndecided: [Int] {
        var groups: [Int] = []
        for candidate in undecided where candidate.group != groups.last { groups.append(candidate.group) }
        return groups
    }

    /// Drops the undecided bindings of some groups. Certain deliveries stay, and so do bindings that are about to be bound
    /// again.
    package mutating func give(up groups: Set<Int>) {
        undecided.removeAll { $0.isLasting && groups.contains($0.group) }
    }

    /// The deliveries, given the answers to the conditions of `undecided` in their order.
    package func resolveUndecided(by answers: [Bool]) -> [Delivery] {
        if undecided.isEmpty { return deliveries }
        var merged = DeliveryMerge(deliveries)
        for (candidate, isMet) in zip(undecided, answers) where isMet {
            merged.addBinding(candidate.id, to: candidate.group, candidate.selection)
        }
        return merged.deliveries
    }
}

/// Merges the matching bindings of a group into one delivery per selection of columns.
struct DeliveryMerge {
    private struct Key: Hashable {
        let group: Int
        let selection: Selection?
    }

    private(set) var deliveries: [Matches.Delivery]
    private var places: [Key: Int]

    init(_ deliveries: [Matches.Delivery] = []) {
        self.deliveries = deliveries
        places = Dictionary(
            uniqueKeysWithValues: deliveries.enumerated().map { (Key(group: $1.group, selection: $1.selection), $0) })
    }

    mutating func addBinding(_ id: Int, to group: Int, _ selection: Selection?) {
        let key = Key(group: group, selection: selection)
        guard let place = places[key] else {
            places[key] = deliveries.count
            deliveries.append(Matches.Delivery(group: group, selection: selection, ids: [id]))
            return
        }
        let at = deliveries[place].ids.firstIndex { $0 >= id } ?? deliveries[place].ids.count
        if at < deliveries[place].ids.count, deliveries[place].ids[at] == id { return }
        deliveries[place].ids.insert(id, at: at)
    }
}

/// Counts the questions to Postgres by group, to find the filters that must end when there are too many.
package struct UndecidedCount {
    private struct Share {
        var questions = 0
        var bindings: Set<Int> = []
    }

    /// The questions of each group, by the group's number.
    private var shares: [Int: Share] = [:]
    private var questions = 0

    package init() {}

    /// Filters that are about to be bound again are not a subscriber's fault, and do not count.
    package mutating func countUndecided(_ matches: Matches) {
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

    /// The bindings that must end so that no more than `most` questions are left: all bindings of the group with the most
    /// questions per member, then of the next; among equals, of the newest group, which has the highest number.
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
