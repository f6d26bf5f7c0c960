/// Who gets a change.
package struct Matches: Sendable {
    /// One frame: a group, the columns it selected, and the bindings that match.
    package struct Delivery: Sendable, Equatable {
        package let group: Int
        package let selection: Selection?
        /// Each id once, ascending.
        package internal(set) var ids: [Int]

        package init(group: Int, selection: Selection?, ids: [Int]) {
            self.group = group
            self.selection = selection
            self.ids = ids
        }
    }

    /// A binding that gets the change if Postgres says so. One reference, because a row may have a thousand.
    package struct Undecided: Sendable {
        let entry: EntryTable.Entry
        /// The part of the filter that the index decides is decided already.
        let isFoundByValue: Bool
        /// Its filter was bound to the table as it is, so Postgres has to decide it for the next row as well. Others are bound
        /// again in a moment.
        package let isLasting: Bool

        package var group: Int { entry.group }
        package var selection: Selection? { entry.selection }
        package var id: Int { entry.ids[0] }
        fileprivate var filter: BoundFilter { isFoundByValue ? entry.residual : entry.filter }
    }

    /// At most one for each group and selection, in no order.
    package internal(set) var deliveries: [Delivery] = []
    package internal(set) var undecided: [Undecided] = []
    /// What `undecided` is to be asked about; nil where nothing is undecided.
    var record: RowRecord?

    package init() {}

    package var isEmpty: Bool { deliveries.isEmpty && undecided.isEmpty }

    /// What Postgres has to be asked, in the order of `undecided`. Made when it is asked for, as it takes microseconds for
    /// each. Equal cells are kept once: a row may be large, and thousands ask about it.
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

    /// What some groups are to get now, and what the others get later.
    ///
    /// - Parameter waits: whether a group has to wait; one with a condition that is undecided does in any case.
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

    /// The groups that something is undecided for. A group may come more than once, but not for each of its bindings where
    /// these stand together, as they mostly do.
    package var groupsOfUndecided: [Int] {
        var groups: [Int] = []
        for candidate in undecided where candidate.group != groups.last { groups.append(candidate.group) }
        return groups
    }

    /// Without what is undecided for some groups; what is certain stays. What is bound again in a moment stays, too.
    package mutating func give(up groups: Set<Int>) {
        undecided.removeAll { $0.isLasting && groups.contains($0.group) }
    }

    /// The deliveries when the conditions of `undecided` have been answered, in their order.
    package func settled(by answers: [Bool]) -> [Delivery] {
        if undecided.isEmpty { return deliveries }
        var merged = DeliveryMerge(deliveries)
        for (candidate, isMet) in zip(undecided, answers) where isMet {
            merged.add(candidate.id, to: candidate.group, candidate.selection)
        }
        return merged.deliveries
    }
}
