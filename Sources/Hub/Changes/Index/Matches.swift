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
        package let condition: PostgresCondition
    }

    /// At most one for each group and selection, in no order.
    package internal(set) var deliveries: [Delivery] = []
    package internal(set) var undecided: [Undecided] = []

    package init() {}

    package var isEmpty: Bool { deliveries.isEmpty && undecided.isEmpty }

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
