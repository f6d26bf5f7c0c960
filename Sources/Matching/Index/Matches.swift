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

    /// A binding that gets the change if Postgres says so.
    package struct Undecided: Sendable {
        package let group: Int
        package let selection: Selection?
        package let id: Int
        let filter: BoundFilter
        let record: RowRecord

        /// What Postgres has to be asked. Made when it is asked for: it takes microseconds, and a row may have thousands.
        package var condition: PostgresCondition {
            var record = record
            return filter.question(about: &record)
        }
    }

    /// At most one for each group and selection, in no order.
    package internal(set) var deliveries: [Delivery] = []
    package internal(set) var undecided: [Undecided] = []

    package init() {}

    package var isEmpty: Bool { deliveries.isEmpty && undecided.isEmpty }

    /// What Postgres has to be asked, in the order of `undecided`. Equal cells are kept once: a row may be large, and
    /// thousands ask about it.
    package var conditions: [PostgresCondition] {
        var cells: [UInt8] = []
        return undecided.map { undecided in
            let condition = undecided.condition
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
        let unsure = Set(undecided.map(\.group))
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
        return (now, later)
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
